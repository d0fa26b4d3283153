/// A number as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// What it is.
    pub value: f64,
    /// What one more in its last digit would add.
    pub step: f64,
}

/// Reads a decimal number: sign, thousands with commas, a fraction, an exponent. Nothing that is not
/// finite.
pub fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if unsigned.is_empty() && fraction.is_empty() || !digits(fraction) || !grouped(unsigned) {
        return None;
    }
    let plain = format!("{}.{fraction}0e{exponent}", whole.replace(',', ""));
    let value: f64 = plain.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    let step = 10_f64.powi(exponent.checked_sub(places)?);
    (value.is_finite() && step.is_finite()).then_some(Number { value, step })
}

/// Digits alone, or in threes after the first comma.
fn grouped(whole: &str) -> bool {
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    digits(first) && groups.all(|group| group.len() == 3 && digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_programs_write() {
        let read = |text| number(text).map(|number| (number.value, number.step));
        assert_eq!(read("83.1061"), Some((83.1061, 0.0001)));
        assert_eq!(read("-2076"), Some((-2076.0, 1.0)));
        assert_eq!(read("25,229.57"), Some((25_229.57, 0.01)));
        assert_eq!(read("1.234e+08"), Some((123_400_000.0, 100_000.0)));
        assert_eq!(read("+44.6"), Some((44.6, 0.1)));
        assert_eq!(read(".5"), Some((0.5, 0.1)));
        for text in ["", "-", ".", "1,23", "nan", "inf", "1e999", "0x10", "1.2.3", "1e", "٣"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
