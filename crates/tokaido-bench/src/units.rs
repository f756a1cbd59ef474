//! Times and numbers in human-readable form.

/// A time in nanoseconds with three digits and its unit, such as `13.9 ns` or `1.25 ms`.
#[must_use]
pub fn time(ns: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
    let size = ns.abs();
    // What rounds to 1000 of a unit is 1 of the next one.
    let fitting = UNITS.iter().rev().find(|(unit, _)| size >= unit * 0.9995);
    let (unit, name) = fitting.unwrap_or(&UNITS[0]);
    let number = ns / unit;
    let decimals = match number.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$} {name}")
}

/// A number of bytes with three digits and its unit, such as `64.0 KiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut number, mut unit) = (count as f64, 0);
    while number >= 1023.5 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1024.0, unit + 1);
    }
    let decimals = match number {
        _ if unit == 0 => 0,
        number if number < 9.995 => 2,
        number if number < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$} {}", UNITS[unit])
}

/// A whole number with commas between its thousands.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let shown = [0.0, 0.304, 13.94, 999.4, 999.6, 1250.0, 16e6, 2.5e9, 3.6e12, -0.04].map(time);
        let expected = [
            "0.00 ns", "0.30 ns", "13.9 ns", "999 ns", "1.00 us", "1.25 us", "16.0 ms", "2.50 s",
            "3600 s", "-0.04 ns",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let shown = [0, 1023, 1024, 100 << 10, 1 << 30, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.00 KiB", "100 KiB", "1.00 GiB", "16777216 TiB"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0, 999, 1000, 123_456, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
