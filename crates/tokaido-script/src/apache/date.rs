//! Dates as HTTP and mail write them.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The seconds since 1970 of a date in one of the three forms of HTTP, or with an offset as in mail;
/// `None` if it is not a date, and for the first second of 1970, which Apache rejects, too.
pub(crate) fn parse_date(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?.trim_start();
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let seconds = match parts[..] {
        [weekday, date, time, _zone] if weekday.ends_with(',') && date.contains('-') => {
            let mut date = date.split('-');
            let (day, month, year) = (date.next()?, date.next()?, date.next()?);
            seconds_of(day, month, two_digits_of_a_year(year)?, time)?
        }
        [weekday, day, month, year, time, zone] if weekday.ends_with(',') => {
            seconds_of(day, month, year_of(year)?, time)? - offset_of(zone)?
        }
        [weekday, month, day, time, year] if is_name(weekday) && is_name(month) => {
            seconds_of(day, month, year_of(year)?, time)?
        }
        [day, month, year, time, zone] => {
            seconds_of(day, month, year_of(year)?, time)? - offset_of(zone)?
        }
        _ => return None,
    };
    (seconds > 0).then_some(seconds)
}

fn is_name(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn year_of(text: &str) -> Option<i64> {
    if text.len() == 4 { number(text) } else { None }
}

fn two_digits_of_a_year(text: &str) -> Option<i64> {
    let year = if text.len() == 2 { number(text)? } else { return None };
    Some(if year < 70 { 2000 + year } else { 1900 + year })
}

/// Seconds east of Greenwich. A zone's name is ignored, as in Apache.
fn offset_of(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return Some(0),
    };
    let digits = &zone[1..];
    if digits.len() != 4 {
        return None;
    }
    let digits = number(digits)?;
    Some(sign * (digits / 100 * 3600 + digits % 100 * 60))
}

fn seconds_of(day: &str, month: &str, year: i64, time: &str) -> Option<i64> {
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let day = if day.len() <= 2 { number(day)? } else { return None };
    let mut parts = time.split(':');
    let mut next = |max| {
        let part = parts.next().filter(|part| part.len() == 2)?;
        number(part).filter(|&value| value <= max)
    };
    let (hour, minute, second) = (next(23)?, next(59)?, next(61)?);
    if parts.next().is_some() || year < 1970 || day < 1 || day > days_in(month, year) {
        return None;
    }
    Some(((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from the beginning of 1970 to that day.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // If years begin in March, the leap day is at their end.
    let shifted = if month > 2 { year } else { year - 1 };
    let of_years = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400;
    let of_months = (153 * ((month + 9) % 12) + 2) / 5;
    of_years + of_months + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Apache gives for each.
    #[test]
    fn dates_are_read_in_all_their_forms() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-12 08:49:37 GMT", Some(1_352_191_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Sun Nov 16 08:49:37 1994", Some(784_975_777)),
            ("6 Nov 1994 08:49:37 +0100", Some(784_108_177)),
            ("Sun, 06 Nov 1994 08:49:37 -0200", Some(784_118_977)),
            ("Sun, 06 Nov 1994 08:49:37 EST", Some(784_111_777)),
            (" Sun, 06 Nov 2094 08:49:37 GMT", Some(3_939_871_777)),
            ("Thu, 29 Feb 1996 00:00:00 GMT", Some(825_552_000)),
            ("Thu, 01 Jan 1970 00:00:01 GMT", Some(1)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", None),
            ("Sun, 31 Feb 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:49:37 GMT", None),
            ("Sun, 6 Nov 1994 8:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 06 Nov 1894 08:49:37 GMT", None),
            ("sun, 06 nov 1994 08:49:37 gmt", None),
            ("06 Nov 94 08:49:37", None),
            ("1 Jan +999 00:00:00 +é12", None),
            ("", None),
        ] {
            assert_eq!(parse_date(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(parse_date(b"\xff"), None);
    }
}
