//! Sizes and durations: how they are written in documents and shown to people.

use std::time::Duration;

use crate::report::number::quantity;

/// What a size looks like, for messages.
pub const SIZE_HELP: &str = "write a size as 4096, 4K, 512M or 1G (binary: 1K is 1024 bytes; KiB, MiB and GiB mean the same)";

/// What a duration looks like, for messages.
pub const DURATION_HELP: &str = "write a duration as 250us, 60ms, 1.5s, 20m or 2h";

/// Reads a size in bytes. `K`, `M`, `G` and `T` are binary, with or without `iB`.
///
/// # Errors
///
/// What is wrong with `text`, without the text itself.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    let shift = match unit {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        "k" | "kB" | "KB" | "MB" | "GB" | "TB" | "m" | "g" => {
            return Err(format!("size has the unit `{unit}`, which is read as decimal by some"));
        }
        _ => return Err("not a size".to_owned()),
    };
    let bytes = u128::from(whole(number).ok_or("not a size")?) << shift;
    u64::try_from(bytes).map_err(|_| "size is too large".to_owned())
}

/// Reads a duration in nanoseconds: a number, which may have a fraction, and a unit.
///
/// # Errors
///
/// What is wrong with `text`, without the text itself.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    let scale: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if !number.is_empty() => return Err("duration has no unit".to_owned()),
        _ => return Err("not a duration".to_owned()),
    };
    let (whole_part, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole_part = whole(whole_part).ok_or("not a duration")?;
    if fraction.len() > 9 || whole(fraction).is_none() {
        return Err("not a duration".to_owned());
    }
    let billionths = whole(&format!("{fraction:0<9}")).ok_or("not a duration")?;
    let ns = u128::from(whole_part) * u128::from(scale)
        + u128::from(billionths) * u128::from(scale) / 1_000_000_000;
    u64::try_from(ns).map_err(|_| "duration is too long".to_owned())
}

/// The digits (and points) at the start of `text`, and the rest.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// An unsigned number of ASCII digits alone; `str::parse` would take a sign.
fn whole(digits: &str) -> Option<u64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// A size as it is written in documents, in the largest unit that keeps it whole: `4K`, `1G`, `100`.
pub fn size(bytes: u64) -> String {
    [(40, "T"), (30, "G"), (20, "M"), (10, "K")]
        .into_iter()
        .find(|(shift, _)| bytes != 0 && bytes.trailing_zeros() >= *shift)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// A duration as it is written in documents, in the largest unit that keeps it whole: `60ms`.
pub fn written_duration(ns: u64) -> String {
    [(60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
        .into_iter()
        .find(|(scale, _)| ns != 0 && ns.is_multiple_of(*scale))
        .map_or_else(|| format!("{ns}ns"), |(scale, unit)| format!("{}{unit}", ns / scale))
}

/// A duration for people: `155.1 us`, `350 ms`, `1.2 s`, `4 min 20 s`, `2 h 05 min`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.9995 {
        return quantity(seconds, "s");
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole_seconds = (duration.as_millis() + 500) / 1000;
    let (minutes, rest) = (whole_seconds / 60, whole_seconds % 60);
    if minutes < 60 {
        return format!("{minutes} min {rest:02} s");
    }
    format!("{} h {:02} min", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes_as_binary() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("4K"), Ok(4096));
        assert_eq!(parse_size("512MiB"), Ok(512 << 20));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        assert!(parse_size("1kB").unwrap_err().contains("decimal"));
        for bad in ["", "G", "-1", "+1", "1.5G", "1X", "99999999999T", "999999999999999999999"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn reads_durations_with_a_fraction() {
        assert_eq!(parse_duration_ns("60ms"), Ok(60_000_000));
        assert_eq!(parse_duration_ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_duration_ns("20m"), Ok(1_200_000_000_000));
        assert_eq!(parse_duration_ns("0s"), Ok(0));
        assert_eq!(parse_duration_ns("5").unwrap_err(), "duration has no unit");
        for bad in ["", "ms", "-1s", "1.2.3s", ".s", "1d", "99999999999h", "1.0000000001s"] {
            assert!(parse_duration_ns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for bytes in [0, 1, 100, 1000, 4096, 1 << 20, 3 << 30, (1 << 20) + 1, u64::MAX] {
            assert_eq!(parse_size(&size(bytes)), Ok(bytes));
        }
        for ns in [0, 1, 1_500, 60_000_000, 1_500_000_000, 60_000_000_000, u64::MAX] {
            assert_eq!(parse_duration_ns(&written_duration(ns)), Ok(ns));
        }
        assert_eq!(written_duration(60_000_000), "60ms");
        assert_eq!(size(4096), "4K");
    }

    #[test]
    fn shows_durations_in_the_unit_people_use() {
        let shown = |ns| duration(Duration::from_nanos(ns));
        assert_eq!(shown(155_100), "155.1 us");
        assert_eq!(shown(350_000_000), "350 ms");
        assert_eq!(shown(1_200_000_000), "1.2 s");
        assert_eq!(shown(59_960_000_000), "1 min 00 s");
        assert_eq!(shown(260_000_000_000), "4 min 20 s");
        assert_eq!(shown(7_500_000_000_000), "2 h 05 min");
    }
}
