//! Licence expressions (SPDX): `MIT OR Apache-2.0`, `(A AND B) OR C`, `A WITH exception`, and the
//! older `MIT/Apache-2.0`.

/// The identifiers in the list `allow = […]` of a `deny.toml`.
pub(super) fn allowed_by(deny: &str) -> Vec<String> {
    let after = deny.split_once("allow = [").map_or("", |(_, after)| after);
    let list = after.split_once(']').map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether allowed licences alone satisfy the expression. An unreadable one is not satisfied.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let holds = either(&mut rest, allowed);
    rest.is_empty() && holds == Some(true)
}

fn either(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut holds = both(rest, allowed)?;
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        holds |= both(rest, allowed)?;
    }
    Some(holds)
}

fn both(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut holds = one(rest, allowed)?;
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        holds &= one(rest, allowed)?;
    }
    Some(holds)
}

fn one(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let holds = either(rest, allowed)?;
            let [")", after @ ..] = *rest else { return None };
            *rest = after;
            Some(holds)
        }
        [licence, "WITH", exception, after @ ..] => {
            *rest = after;
            Some(allowed.contains(&format!("{licence} WITH {exception}")))
        }
        [licence, after @ ..] => {
            *rest = after;
            Some(allowed.iter().any(|name| name == licence))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<String> {
        allowed_by("[licenses]\nallow = [\n  \"MIT\",\n  \"BSD-2-Clause\", # why\n]\nx = [\"GPL\"]")
    }

    #[test]
    fn the_list_ends_where_it_ends() {
        assert_eq!(allowed(), ["MIT", "BSD-2-Clause"]);
    }

    #[test]
    fn an_expression_needs_one_way_to_be_met() {
        for expression in
            ["MIT", "GPL-3.0 OR MIT", "Apache-2.0/MIT", "(GPL-3.0 OR MIT) AND BSD-2-Clause"]
        {
            assert!(is_allowed(expression, &allowed()), "{expression}");
        }
    }

    #[test]
    fn an_expression_that_cannot_be_met_or_read_is_refused() {
        for expression in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT WITH some-exception",
            "(MIT",
            "MIT GPL-3.0",
            "MIT OR",
        ] {
            assert!(!is_allowed(expression, &allowed()), "{expression}");
        }
    }
}
