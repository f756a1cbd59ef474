//! What a search asks for, parsed from its arguments.

use tokaido_store::ReadTransaction;

use super::{
    cell::{Cell, Point},
    shape::{Shape, is_on_map},
};
use crate::redis::{call::Call, failure::Failure, number::parse_double, sorted_sets::sorted_set};

/// A unit of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// Its length in metres.
    pub(super) metres: f64,
}

impl Unit {
    pub(super) const METRE: Self = Self { metres: 1.0 };

    /// The unit named by the argument at `index`.
    pub(super) fn read(call: &Call<'_>, index: usize) -> Result<Self, Failure> {
        const UNITS: [(&str, f64); 4] =
            [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)];
        let unit = UNITS.iter().find(|(name, _)| call.is_word(index, name));
        let (_, metres) = unit
            .ok_or_else(|| Failure::other("unsupported unit provided. please use M, KM, FT, MI"))?;
        Ok(Self { metres: *metres })
    }
}

/// The longitude at `index` and the latitude after it.
pub(super) fn read_point(call: &Call<'_>, index: usize) -> Result<Point, Failure> {
    let read = |index| parse_double(call.arg(index)).ok_or(Failure::NotAFloat);
    let point = Point { longitude: read(index)?, latitude: read(index + 1)? };
    if is_on_map(point) {
        return Ok(point);
    }
    let Point { longitude, latitude } = point;
    Err(Failure::other(format!("invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

/// The command of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// GEORADIUS.
    AroundPoint,
    /// GEORADIUSBYMEMBER.
    AroundMember,
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE.
    SearchAndStore,
}

/// The order in which to return points; without one, they come as they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    NearestFirst,
    FarthestFirst,
}

/// The source of the centre. A member may be named even if there is no sorted set to find it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Nothing,
    Member,
    Point,
}

/// A search.
pub(super) struct Query {
    form: Form,
    pub(super) centre: Option<Point>,
    pub(super) shape: Option<Shape>,
    pub(super) unit: Unit,
    pub(super) with_distance: bool,
    pub(super) with_score: bool,
    pub(super) with_point: bool,
    pub(super) order: Option<Order>,
    /// Maximum number of points.
    pub(super) count: Option<u64>,
    /// Whether any points will do, instead of the nearest.
    pub(super) is_any: bool,
    /// The index of the key to store the result under.
    pub(super) store: Option<usize>,
    pub(super) stores_distance: bool,
    origin: Origin,
}

impl Query {
    /// Parses a search. Members are looked up in the sorted set, if it exists.
    pub(super) fn read(
        call: &Call<'_>,
        tx: &mut (impl ReadTransaction + ?Sized),
        form: Form,
        may_store: bool,
        has_set: bool,
    ) -> Result<Self, Failure> {
        let mut query = Self {
            form,
            centre: None,
            shape: None,
            unit: Unit::METRE,
            with_distance: false,
            with_score: false,
            with_point: false,
            order: None,
            count: None,
            is_any: false,
            store: (form == Form::SearchAndStore).then_some(1),
            stores_distance: false,
            origin: Origin::Nothing,
        };
        let mut at = match form {
            Form::AroundPoint => {
                query.centre = Some(read_point(call, 2)?);
                query.read_circle(call, 4)?;
                6
            }
            Form::AroundMember => {
                if has_set {
                    query.centre = Some(member_point(call, tx, 2, 1)?);
                    query.read_circle(call, 3)?;
                }
                5
            }
            Form::Search => 2,
            Form::SearchAndStore => 3,
        };
        while at < call.len() {
            at += match query.read_option(call, at, may_store)? {
                0 => query.read_area(call, tx, at, has_set)?,
                taken => taken,
            };
        }
        query.check(call)?;
        Ok(query)
    }

    fn is_search(&self) -> bool {
        matches!(self.form, Form::Search | Form::SearchAndStore)
    }

    fn read_circle(&mut self, call: &Call<'_>, at: usize) -> Result<(), Failure> {
        let radius = read_length(call, at, "need numeric radius")?;
        if radius < 0.0 {
            return Err(Failure::other("radius cannot be negative"));
        }
        self.unit = Unit::read(call, at + 1)?;
        self.shape = Some(Shape::Circle { radius_m: radius * self.unit.metres });
        Ok(())
    }

    fn read_box(&mut self, call: &Call<'_>, at: usize) -> Result<(), Failure> {
        let width = read_length(call, at, "need numeric width")?;
        let height = read_length(call, at + 1, "need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(Failure::other("height or width cannot be negative"));
        }
        self.unit = Unit::read(call, at + 2)?;
        let Unit { metres } = self.unit;
        self.shape = Some(Shape::Box { width_m: width * metres, height_m: height * metres });
        Ok(())
    }

    /// Parses an option that says what to do with the points. Returns its number of arguments, 0 if none.
    fn read_option(
        &mut self,
        call: &Call<'_>,
        at: usize,
        may_store: bool,
    ) -> Result<usize, Failure> {
        let has_more = at + 1 < call.len();
        let mut taken = 1;
        if call.is_word(at, "WITHDIST") {
            self.with_distance = true;
        } else if call.is_word(at, "WITHHASH") {
            self.with_score = true;
        } else if call.is_word(at, "WITHCOORD") {
            self.with_point = true;
        } else if call.is_word(at, "ANY") {
            self.is_any = true;
        } else if call.is_word(at, "ASC") {
            self.order = Some(Order::NearestFirst);
        } else if call.is_word(at, "DESC") {
            self.order = Some(Order::FarthestFirst);
        } else if call.is_word(at, "COUNT") && has_more {
            let count = u64::try_from(call.integer(at + 1)?).ok().filter(|count| *count > 0);
            self.count = Some(count.ok_or_else(|| Failure::other("COUNT must be > 0"))?);
            taken = 2;
        } else if self.form == Form::SearchAndStore && call.is_word(at, "STOREDIST") {
            self.stores_distance = true;
        } else {
            let stores_distance = call.is_word(at, "STOREDIST");
            let is_store = stores_distance || call.is_word(at, "STORE");
            if !is_store || self.is_search() || !may_store || !has_more {
                return Ok(0);
            }
            (self.store, self.stores_distance) = (Some(at + 1), stores_distance);
            taken = 2;
        }
        Ok(taken)
    }

    /// Parses an option that says where to search. Returns the number of its arguments.
    fn read_area(
        &mut self,
        call: &Call<'_>,
        tx: &mut (impl ReadTransaction + ?Sized),
        at: usize,
        has_set: bool,
    ) -> Result<usize, Failure> {
        let left = call.len() - at - 1;
        let is_from_member = call.is_word(at, "FROMMEMBER");
        let is_circle = call.is_word(at, "BYRADIUS");
        if !self.is_search() {
            return Err(Failure::Syntax);
        }
        if is_from_member && left >= 1 && self.origin != Origin::Point {
            if has_set {
                let set = if self.form == Form::Search { 1 } else { 2 };
                self.centre = Some(member_point(call, tx, at + 1, set)?);
            }
            self.origin = Origin::Member;
            return Ok(2);
        }
        if call.is_word(at, "FROMLONLAT") && left >= 2 && self.origin != Origin::Member {
            self.centre = Some(read_point(call, at + 1)?);
            self.origin = Origin::Point;
            return Ok(3);
        }
        if is_circle && left >= 2 && !matches!(self.shape, Some(Shape::Box { .. })) {
            self.read_circle(call, at + 1)?;
            return Ok(3);
        }
        let is_box = call.is_word(at, "BYBOX");
        if is_box && left >= 3 && !matches!(self.shape, Some(Shape::Circle { .. })) {
            self.read_box(call, at + 1)?;
            return Ok(4);
        }
        Err(Failure::Syntax)
    }

    /// Rejects options that do not go together, and a search without a centre or a shape.
    fn check(&self, call: &Call<'_>) -> Result<(), Failure> {
        if self.store.is_some() && (self.with_distance || self.with_score || self.with_point) {
            let what = match self.form {
                Form::SearchAndStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(Failure::other(format!(
                "{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let name = String::from_utf8_lossy(call.arg(0));
        if self.is_search() && self.origin == Origin::Nothing {
            return Err(Failure::other(format!(
                "exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if self.is_search() && self.shape.is_none() {
            return Err(Failure::other(format!(
                "exactly one of BYRADIUS and BYBOX can be specified for {name}"
            )));
        }
        if self.is_any && self.count.is_none() {
            return Err(Failure::other("the ANY argument requires COUNT argument"));
        }
        Ok(())
    }
}

fn read_length(call: &Call<'_>, index: usize, message: &str) -> Result<f64, Failure> {
    parse_double(call.arg(index)).ok_or_else(|| Failure::other(message))
}

/// The position of the member named at `index`, in the sorted set whose key is at `set`.
fn member_point(
    call: &Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    index: usize,
    set: usize,
) -> Result<Point, Failure> {
    let mut point = None;
    sorted_set(call, set).look_up(tx, [call.arg(index)], |score| {
        point = score.map(|score| Cell::of_score(score).point());
    })?;
    point.ok_or_else(|| Failure::other("could not decode requested zset member"))
}
