//! Points and the distances between them: GEOADD, GEOPOS, GEODIST, GEOHASH.

use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{
    cell::{Cell, Point, STEPS_MAX},
    query::{Unit, read_point},
    shape::distance_m,
};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    reply::Reply,
    sorted_sets::{Rules, give_scores, sorted_set},
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"geoadd" -5 Write(geoadd), KEY [DENYOOM] Geo "3.2.0"
    "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]"
    "Sets the longitude and latitude of members; returns how many members are new.";
"geodist" -4 Read(geodist), KEY [] Geo "3.2.0"
    "key member1 member2 [M | KM | FT | MI]"
    "Returns the distance between two members.";
"geohash" -2 Read(geohash), KEY [] Geo "3.2.0"
    "key [member [member ...]]"
    "Returns the positions of members as geohashes.";
"geopos" -2 Read(geopos), KEY [] Geo "3.2.0"
    "key [member [member ...]]"
    "Returns the longitude and latitude of members.";
};

fn geoadd(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (mut rules, mut first) = (Rules::default(), 2);
    loop {
        *(if call.is_word(first, "NX") {
            &mut rules.only_new
        } else if call.is_word(first, "XX") {
            &mut rules.only_old
        } else if call.is_word(first, "CH") {
            &mut rules.counts_changes
        } else {
            break;
        }) = true;
        first += 1;
    }
    let texts = call.len() - first;
    let is_contradictory = rules.only_new && rules.only_old;
    if texts == 0 || !texts.is_multiple_of(3) || is_contradictory {
        return Err(Failure::Syntax);
    }
    let mut members = Vec::new();
    for at in (first..call.len()).step_by(3) {
        let (score, _) = Cell::of(read_point(call, at)?, STEPS_MAX).scores();
        members.push((call.arg(at + 2), score));
    }
    give_scores(call, tx, &rules, members)
}

/// Calls `visit` with the position of each member after the key, or `None` for a missing member.
fn look_up(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    mut visit: impl FnMut(&mut dyn Reply, Option<Point>),
) -> Result<(), Failure> {
    let members = call.request.arguments_from(2);
    call.reply.array(call.len() - 2);
    sorted_set(call, 1).look_up(tx, members, |score| {
        visit(call.reply, score.map(|score| Cell::of_score(score).point()));
    })?;
    Ok(())
}

fn geopos(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    look_up(call, tx, |reply, point| match point {
        Some(point) => write_point(reply, point),
        None => reply.null_array(),
    })
}

/// Writes a longitude and a latitude.
pub(super) fn write_point(reply: &mut dyn Reply, point: Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        reply.double_as(degrees, &in_full(degrees));
    }
}

/// Formats with 17 decimal places, as Redis writes coordinates, but without trailing zeros.
fn in_full(number: f64) -> String {
    let text = format!("{number:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn geohash(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    look_up(call, tx, |reply, point| match point {
        Some(point) => reply.bulk(&hash_of(point)),
        None => reply.null(),
    })
}

/// The standard geohash, for which the map extends to the poles. Its 11 letters have more bits than a cell, so
/// the last letter is always 0.
fn hash_of(point: Point) -> [u8; 11] {
    const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    const LETTER_BITS: u32 = 5;
    let bits = Cell::within(point, STEPS_MAX, 90.0).bits;
    std::array::from_fn(|i| {
        let shift = (2 * STEPS_MAX).checked_sub((i as u32 + 1) * LETTER_BITS);
        LETTERS[shift.map_or(0, |shift| bits >> shift & 0x1f) as usize]
    })
}

fn geodist(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let unit = match call.len() {
        4 => Unit::METRE,
        5 => Unit::read(call, 4)?,
        _ => return Err(Failure::Syntax),
    };
    let mut points = Vec::with_capacity(2);
    sorted_set(call, 1).look_up(tx, [call.arg(2), call.arg(3)], |score| {
        points.extend(score.map(|score| Cell::of_score(score).point()));
    })?;
    match points[..] {
        [a, b] => write_distance(call.reply, unit, distance_m(a, b)),
        _ => call.reply.null(),
    }
    Ok(())
}

/// Writes a distance in a unit, with four decimal places.
pub(super) fn write_distance(reply: &mut dyn Reply, unit: Unit, distance_m: f64) {
    reply.bulk(format!("{:.4}", distance_m / unit.metres).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_the_geohash_that_maps_know() {
        let point = Cell::of_score(3_479_099_956_230_698.0).point();
        assert_eq!(&hash_of(point), b"sqc8b49rny0");
        assert_eq!(in_full(point.longitude), "13.36138933897018433");
        assert_eq!((in_full(-0.0), in_full(90.0)), ("0".to_owned(), "90".to_owned()));
    }
}
