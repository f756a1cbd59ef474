//! Query plans: how to find the rows of a query, through the table or through one of its indexes.

use tokaido_store::{Direction, limits::KEY_LEN_MAX, prefix_end};

use crate::{
    Condition, Index, IndexKind, Operator, Order, Query,
    condition::Operand,
    declaration::Declaration,
    entries::{beginning_prefix, prefix, text_prefix},
    full_text::FullText,
    number::Number,
    range::{Range, apart},
    text::{GRAM_CHARS, first_gram, tokens},
};

/// Walking through an index for its order pays off if at most one in this many rows is wanted:
/// looking a row up costs more than scanning past it.
const ORDER_WALK_RATIO: u64 = 5;

/// The plan of a query.
#[derive(Debug)]
pub(crate) struct Plan<'d> {
    pub(crate) way: Way<'d>,
    pub(crate) direction: Direction,
    /// Whether the rows come in the order of the query.
    pub(crate) is_ordered: bool,
}

#[derive(Debug)]
pub(crate) enum Way<'d> {
    /// The rows in ranges of keys.
    Rows(Vec<Range>),
    /// The entries of an index in disjoint, ordered ranges; if `may_repeat`, several of one row.
    Index { index: &'d Index, ranges: Vec<Range>, may_repeat: bool },
    /// All entries of an index, for their order, and then the rows without an entry.
    Order(&'d Index),
}

/// A way for one condition, and its rank: the lower, the fewer rows are expected.
struct Candidate<'d> {
    rank: u8,
    way: Way<'d>,
}

impl<'d> Plan<'d> {
    /// The plan for a query on a table with `rows` rows.
    pub(crate) fn choose(query: &Query, declaration: &'d Declaration, rows: u64) -> Self {
        let order = query.order.as_ref();
        let direction = match order.is_some_and(Order::is_descending) {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        let usable = query.conditions.iter().filter(|c| !c.is_negated && !c.without_index);
        let candidates = usable.filter_map(|condition| match condition.column.is_empty() {
            true => keys(condition).or_else(|| indexed(condition, declaration)),
            false => indexed(condition, declaration),
        });
        let way = match candidates.min_by_key(|candidate| candidate.rank) {
            Some(best) => best.way,
            None => {
                let walk = order.and_then(|order| ordering(order, declaration));
                let few = (query.wanted() as u64).saturating_mul(ORDER_WALK_RATIO) < rows;
                walk.filter(|_| few).map_or_else(|| Way::Rows(vec![Range::ALL]), Way::Order)
            }
        };
        let is_ordered = order.is_none_or(|order| way.is_in(order));
        Self { way, direction, is_ordered }
    }
}

impl Way<'_> {
    fn is_in(&self, order: &Order) -> bool {
        match self {
            Self::Rows(_) => order.is_of_keys(),
            Self::Index { index, .. } => orders(index, order),
            Self::Order(_) => true,
        }
    }
}

/// Whether an index has its rows in this order.
fn orders(index: &Index, order: &Order) -> bool {
    let kind = if order.is_of_numbers() { IndexKind::Decimal } else { IndexKind::Lexical };
    index.kind == kind && index.column == order.column
}

fn ordering<'d>(order: &Order, declaration: &'d Declaration) -> Option<&'d Index> {
    let index = declaration.find(&order.column)?;
    (index.is_built() && orders(index, order)).then_some(index)
}

/// The way to the rows for a condition on the key.
fn keys<'d>(condition: &Condition) -> Option<Candidate<'d>> {
    let Operand::Text(operand) = &condition.operand else { return None };
    let (rank, ranges) = match condition.operator {
        Operator::Equal => (0, vec![Range::key(operand)]),
        Operator::OneOf => {
            // A key is compared up to its first NUL.
            let keys = tokens(operand)
                .flat_map(|token| [Range::key(token), Range::beginning([token, &[0]].concat())]);
            (1, keys.collect())
        }
        Operator::Begins => (8, vec![Range::beginning(operand.clone())]),
        _ => return None,
    };
    let ranges = ranges.into_iter().filter(|range| range.low.len() <= KEY_LEN_MAX);
    Some(Candidate { rank, way: Way::Rows(apart(ranges.collect())) })
}

/// The way through the index of a condition's column, if it is suitable.
fn indexed<'d>(condition: &Condition, declaration: &'d Declaration) -> Option<Candidate<'d>> {
    let index = declaration.find(&condition.column).filter(|index| index.is_built())?;
    let (rank, ranges) = match (index.kind, &condition.operand) {
        (IndexKind::Lexical, Operand::Text(operand)) => texts(index, condition.operator, operand)?,
        (IndexKind::Token, Operand::Text(operand)) => {
            token_ranges(index, condition.operator, operand)?
        }
        (IndexKind::Decimal, Operand::Numbers(operands)) => {
            numbers(index, condition.operator, operands)?
        }
        (IndexKind::Qgram, Operand::FullText(wanted)) => grams(index, wanted)?,
        _ => return None,
    };
    let has_one_entry = matches!(index.kind, IndexKind::Lexical | IndexKind::Decimal);
    let is_exact = |range: &Range| range.low.last() == Some(&0);
    let has_one_range = ranges.len() == 1 && ranges.iter().all(is_exact);
    let may_repeat = !(has_one_entry || has_one_range);
    Some(Candidate { rank, way: Way::Index { index, ranges: apart(ranges), may_repeat } })
}

type Ranked = Option<(u8, Vec<Range>)>;

fn exactly(index: &Index, text: &[u8]) -> Range {
    Range::beginning(text_prefix(index, text))
}

fn texts(index: &Index, operator: Operator, operand: &[u8]) -> Ranked {
    Some(match operator {
        Operator::Equal => (2, vec![exactly(index, operand)]),
        Operator::OneOf => (4, tokens(operand).map(|token| exactly(index, token)).collect()),
        Operator::Begins => (8, vec![Range::beginning(beginning_prefix(index, operand))]),
        _ => return None,
    })
}

fn token_ranges(index: &Index, operator: Operator, operand: &[u8]) -> Ranked {
    Some(match operator {
        // Every row with all tokens has the longest one, which is the best guess at the rarest.
        Operator::AllTokens => {
            (6, vec![exactly(index, tokens(operand).max_by_key(|token| token.len())?)])
        }
        Operator::AnyToken => (10, tokens(operand).map(|token| exactly(index, token)).collect()),
        _ => return None,
    })
}

fn numbers(index: &Index, operator: Operator, operands: &[Number]) -> Ranked {
    let prefix = prefix(index);
    let at = |number: &Number| [&prefix[..], number.as_bytes()].concat();
    let end = || Some([&prefix[..], &Number::END].concat());
    let first = operands.first().cloned().unwrap_or_else(|| Number::parse(b""));
    // What is not a number compares to nothing.
    let wanted: Vec<_> = operands.iter().filter(|operand| operand.is_number()).collect();
    if wanted.len() < operands.len() && operator != Operator::NumberOneOf {
        return Some((0, Vec::new()));
    }
    Some(match operator {
        Operator::NumberEqual => (3, vec![Range::beginning(at(&first))]),
        Operator::NumberOneOf => (5, wanted.into_iter().map(|n| Range::beginning(at(n))).collect()),
        Operator::Between => {
            let last = operands.last().unwrap_or(&first);
            (9, vec![Range { low: at(&first), high: prefix_end(&at(last)) }])
        }
        Operator::Greater => (11, vec![Range { low: prefix_end(&at(&first))?, high: end() }]),
        Operator::GreaterOrEqual => (11, vec![Range { low: at(&first), high: end() }]),
        Operator::Less => (11, vec![Range { high: Some(at(&first)), low: prefix }]),
        Operator::LessOrEqual => (11, vec![Range { high: prefix_end(&at(&first)), low: prefix }]),
        _ => return None,
    })
}

/// Every row that matches has a gram of each wanted group: that of the first characters of one of its
/// phrases, which for a short phrase is only a prefix of a gram.
fn grams(index: &Index, wanted: &FullText) -> Ranked {
    if !wanted.groups.first()?.is_wanted {
        return None;
    }
    let groups = wanted.groups.iter().filter(|group| group.is_wanted);
    let usable = groups.filter(|group| group.phrases.iter().all(|phrase| !phrase.is_empty()));
    let shortest = |phrases: &[String]| phrases.iter().map(|p| p.chars().count()).min();
    // The longest phrase with the fewest others beside it.
    let best = usable.max_by_key(|group| {
        let is_single = group.phrases.len() <= 1;
        (is_single, shortest(&group.phrases).unwrap_or_default())
    })?;
    let ranges = best.phrases.iter().map(|phrase| {
        let gram = first_gram(phrase);
        match gram.chars().count() {
            GRAM_CHARS => exactly(index, gram.as_bytes()),
            _ => Range::beginning(beginning_prefix(index, gram.as_bytes())),
        }
    });
    Some((7, ranges.collect()))
}
