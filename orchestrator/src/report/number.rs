//! Numbers as people read them: four significant digits, a unit that fits.

/// `10 %`, `2.5 %`: a margin, as it would be written.
pub fn margin(margin: f64) -> String {
    // Rounded, so that 0.07 * 100 is 7.
    format!("{} %", (margin * 1e8).round() / 1e6)
}

/// `16.1 %`, `0.42 %`, `-3.0 %`: a measured change.
pub fn percent(change: f64) -> String {
    format!("{} %", bare_percent(change))
}

/// As [`percent`], with its sign always: `+16.1 %`.
pub fn signed_percent(change: f64) -> String {
    format!("{} %", signed(change))
}

/// `+10 %`, `0`: a change that was chosen, not measured.
pub fn tick(change: f64) -> String {
    match change {
        0.0 => "0".to_owned(),
        more if more > 0.0 => format!("+{}", margin(more)),
        less => margin(less),
    }
}

/// `[+12.0, +19.8]`, in percent.
pub fn interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", signed(low), signed(high))
}

fn signed(change: f64) -> String {
    let bare = bare_percent(change);
    // What rounds to zero has no sign.
    let zero = bare.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.'));
    if zero {
        return bare.trim_start_matches('-').to_owned();
    }
    if bare.starts_with('-') { bare } else { format!("+{bare}") }
}

fn bare_percent(change: f64) -> String {
    let percent = change * 100.0;
    match percent.abs() {
        size if size >= 1e7 => format!("{percent:.1e}"),
        size if size >= 1000.0 => format!("{percent:.0}"),
        size if size >= 0.95 || size == 0.0 => format!("{percent:.1}"),
        _ => format!("{percent:.2}"),
    }
}

const TIMES: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];

/// `155.1 us`, `12.30 k/s`, `4096 B`, `3.200 MB/s`: a value in its unit.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => scaled(value, &TIMES),
        "us" => scaled(value * 1e3, &TIMES),
        "ms" => scaled(value * 1e6, &TIMES),
        "s" => scaled(value * 1e9, &TIMES),
        "1/s" => scaled(value, &RATES),
        "count" | "1" => four_digits(value),
        other => format!("{} {other}", four_digits(value)),
    }
}

/// The marks of an axis: all in the unit that fits the largest, with as many decimals as tell
/// neighbours apart. `values` ascend.
pub fn marks(values: &[f64], unit: &str) -> Vec<String> {
    let largest = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let (divisor, name) = match unit {
        "ns" => fitting(largest, &TIMES),
        "us" | "ms" | "s" => (1.0, unit),
        "1/s" => fitting(largest, &RATES),
        "count" | "1" => fitting(largest, &COUNTS),
        other => (1.0, other),
    };
    let apart = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::MAX, f64::min);
    let told = |decimals: &i32| apart / divisor * 10_f64.powi(*decimals) >= 0.999_999;
    let decimals = (0..6).find(told).unwrap_or(6);
    let decimals = usize::try_from(decimals).unwrap_or(0);
    let mark = |value: &f64| format!("{:.decimals$} {name}", value / divisor).trim_end().to_owned();
    values.iter().map(mark).collect()
}

const RATES: [(f64, &str); 4] = [(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")];
const COUNTS: [(f64, &str); 3] = [(1.0, ""), (1e6, "M"), (1e9, "G")];

fn fitting(value: f64, steps: &[(f64, &'static str)]) -> (f64, &'static str) {
    // 999.96 would round up to 1000.0, so the next step begins a little earlier.
    let found = steps.iter().rev().find(|(scale, _)| value.abs() >= 0.99995 * scale);
    found.or_else(|| steps.first()).copied().unwrap_or((1.0, ""))
}

fn scaled(value: f64, steps: &[(f64, &'static str)]) -> String {
    let (scale, unit) = fitting(value, steps);
    format!("{} {unit}", four_digits(value / scale))
}

/// Four significant digits; whole numbers and large ones without decimals.
fn four_digits(value: f64) -> String {
    let size = value.abs();
    if size >= 1e9 || (size < 1e-3 && size > 0.0) {
        return format!("{value:.3e}");
    }
    if value.fract() == 0.0 || size >= 999.95 {
        return format!("{value:.0}");
    }
    let decimals = [(99.995, 1), (9.9995, 2)].iter().find(|(from, _)| size >= *from);
    let decimals = decimals.map_or(3, |(_, decimals)| *decimals);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_four_digits_and_a_fitting_unit() {
        assert_eq!(quantity(155_123.0, "ns"), "155.1 us");
        assert_eq!(quantity(999_960.0, "ns"), "1.000 ms");
        assert_eq!(quantity(81.0, "ns"), "81 ns");
        assert_eq!(quantity(0.002, "s"), "2 ms");
        assert_eq!(quantity(1500.0, "ms"), "1.500 s");
        assert_eq!(quantity(12_345.6, "1/s"), "12.35 k/s");
        assert_eq!(quantity(512.0, "MB/s"), "512 MB/s");
        assert_eq!(quantity(17.0, "count"), "17");
        assert_eq!(quantity(1.5e12, "widgets"), "1.500e12 widgets");
        assert_eq!(quantity(0.0, "ns"), "0 ns");
    }

    #[test]
    fn marks_of_an_axis_share_a_unit_and_differ() {
        assert_eq!(marks(&[150_000.0, 155_000.0], "ns"), ["150 us", "155 us"]);
        assert_eq!(marks(&[999_500.0, 1_000_000.0], "ns"), ["0.9995 ms", "1.0000 ms"]);
        assert_eq!(marks(&[146_476.2, 146_476.4], "count"), ["146476.2", "146476.4"]);
        assert_eq!(marks(&[0.0, 2e6], "count"), ["0 M", "2 M"]);
        assert_eq!(marks(&[1.5, 2.0], "widgets"), ["1.5 widgets", "2.0 widgets"]);
        assert_eq!(marks(&[3.0], "1/s"), ["3 /s"]);
    }

    #[test]
    fn percentages_keep_what_can_be_read() {
        assert_eq!(margin(0.07), "7 %");
        assert_eq!(margin(0.025), "2.5 %");
        assert_eq!(percent(0.1), "10.0 %");
        assert_eq!(percent(0.1609), "16.1 %");
        assert_eq!(percent(0.0042), "0.42 %");
        assert_eq!(percent(1e300), "1.0e302 %");
        assert_eq!(signed_percent(0.1609), "+16.1 %");
        assert_eq!(signed_percent(-0.00001), "0.00 %");
        assert_eq!(signed_percent(0.0), "0.0 %");
        assert_eq!(interval(-0.0301, 0.12), "[-3.0, +12.0]");
    }
}
