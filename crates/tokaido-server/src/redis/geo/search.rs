//! Points near another one: GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUSBYMEMBER.

use std::ops::{Bound, ControlFlow};

use tokaido_collections::{SortedSet, Span};
use tokaido_store::{Direction, ReadTransaction, WriteTransaction};

use super::{
    cell::{Cell, Point},
    points::{write_distance, write_point},
    query::{Form, Order, Query},
};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    sorted_sets::sorted_set,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"georadius" -6 Write(georadius), KEY [DENYOOM MOVABLE_KEYS] Geo "3.2.0"
    "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]"
    "Returns or stores the members within a radius of a point. Superseded by GEOSEARCH.";
"georadius_ro" -6 Read(georadius_ro), KEY [] Geo "3.2.10"
    "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]"
    "Returns the members within a radius of a point. Superseded by GEOSEARCH.";
"georadiusbymember" -5 Write(georadiusbymember), KEY [DENYOOM MOVABLE_KEYS] Geo "3.2.0"
    "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]"
    "Returns or stores the members within a radius of one of them. Superseded by GEOSEARCH.";
"georadiusbymember_ro" -5 Read(georadiusbymember_ro), KEY [] Geo "3.2.10"
    "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]"
    "Returns the members within a radius of one of them. Superseded by GEOSEARCH.";
"geosearch" -7 Read(geosearch), KEY [] Geo "6.2.0"
    "key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]"
    "Returns the members within a circle or a box.";
"geosearchstore" -8 Write(geosearchstore), TWO_KEYS [DENYOOM] Geo "6.2.0"
    "destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]"
    "Stores the members within a circle or a box; returns their number.";
};

fn georadius(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    find_and_store(call, tx, Form::AroundPoint)
}

fn georadiusbymember(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    find_and_store(call, tx, Form::AroundMember)
}

fn geosearchstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    find_and_store(call, tx, Form::SearchAndStore)
}

fn georadius_ro(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Form::AroundPoint)
}

fn georadiusbymember_ro(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Form::AroundMember)
}

fn geosearch(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Form::Search)
}

fn give(call: &mut Call<'_>, tx: &mut dyn ReadTransaction, form: Form) -> Result<(), Failure> {
    let set = sorted_set(call, 1);
    let has_set = !set.is_empty(tx)?;
    let query = Query::read(call, tx, form, false, has_set)?;
    let found = search(call, tx, &set, &query)?;
    tell(call, &query, &found);
    Ok(())
}

fn find_and_store(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    form: Form,
) -> Result<(), Failure> {
    let set = sorted_set(call, if form == Form::SearchAndStore { 2 } else { 1 });
    let has_set = !set.is_empty(tx)?;
    let query = Query::read(call, tx, form, true, has_set)?;
    let found = search(call, tx, &set, &query)?;
    let Some(destination) = query.store else {
        tell(call, &query, &found);
        return Ok(());
    };
    let members = found.iter().map(|found| {
        let distance = found.distance_m / query.unit.metres;
        (&found.member[..], if query.stores_distance { distance } else { found.score })
    });
    let count = sorted_set(call, destination).replace(tx, call.packing(), members)?;
    call.reply.integer(count as i64);
    Ok(())
}

/// A member within the search area.
struct Found {
    member: Vec<u8>,
    score: f64,
    point: Point,
    distance_m: f64,
}

/// The members that a search returns, in its order.
fn search(
    call: &Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    set: &SortedSet<'_>,
    query: &Query,
) -> Result<Vec<Found>, Failure> {
    let (Some(centre), Some(shape)) = (query.centre, query.shape) else { return Ok(Vec::new()) };
    let span = |cell: &Cell| {
        let (first, end) = cell.scores();
        Span::of_scores(Bound::Included(first), Bound::Excluded(end))
    };
    let spans: Vec<Span> = shape.cells(centre).iter().map(span).collect();
    let mut visited = 0;
    for span in &spans {
        let ranks = set.ranks(tx, span)?;
        visited += ranks.end - ranks.start;
    }
    call.check_visit(visited)?;
    let wanted = query.count.map_or(usize::MAX, |count| count as usize);
    let enough = if query.is_any { wanted } else { usize::MAX };
    let (mut found, mut room) = (Vec::new(), call.room());
    for span in &spans {
        if found.len() >= enough {
            break;
        }
        set.visit(tx, span, Direction::Forward, |member, score| {
            let point = Cell::of_score(score).point();
            let Some(distance_m) = shape.distance_within_m(centre, point) else {
                return ControlFlow::Continue(());
            };
            room.take(member.len() + size_of::<Found>())?;
            found.push(Found { member: member.to_vec(), score, point, distance_m });
            if found.len() >= enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    call.check_room(&room)?;
    // The nearest ones can be chosen only after sorting.
    let needs_order = query.count.is_some() && !query.is_any;
    let order = query.order.or(needs_order.then_some(Order::NearestFirst));
    found.sort_by(|a, b| match order {
        None => std::cmp::Ordering::Equal,
        Some(Order::NearestFirst) => a.distance_m.total_cmp(&b.distance_m),
        Some(Order::FarthestFirst) => b.distance_m.total_cmp(&a.distance_m),
    });
    found.truncate(wanted);
    Ok(found)
}

fn tell(call: &mut Call<'_>, query: &Query, found: &[Found]) {
    let details = [query.with_distance, query.with_score, query.with_point];
    let details = details.into_iter().filter(|is_wanted| *is_wanted).count();
    let reply = &mut *call.reply;
    reply.array(found.len());
    for Found { member, score, point, distance_m } in found {
        if details > 0 {
            reply.array(1 + details);
        }
        reply.bulk(member);
        if query.with_distance {
            write_distance(reply, query.unit, *distance_m);
        }
        if query.with_score {
            reply.integer(*score as i64);
        }
        if query.with_point {
            write_point(reply, *point);
        }
    }
}
