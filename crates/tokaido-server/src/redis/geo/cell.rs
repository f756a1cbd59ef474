//! Cells of the earth's surface, and the scores that represent them.
//!
//! The ranges of longitude and latitude on a web map are halved repeatedly, each time with a bit for the half
//! that is kept. The bits of both, interleaved, are a cell. After 26 steps it is smaller than a metre and has 52
//! bits, which a score holds without loss. Points near each other mostly have scores near each other. This is the
//! format that Redis stores (its `geohash.c`), so that each server can read the other's sorted sets.

/// Maximum longitude in degrees. The minimum is its negative.
pub(super) const LONGITUDE_MAX: f64 = 180.0;

/// Maximum latitude of a web map (EPSG:3857) in degrees. The minimum is its negative.
pub(super) const LATITUDE_MAX: f64 = 85.051_128_78;

/// As many steps as fit into a score.
pub(super) const STEPS_MAX: u32 = 26;

/// A position on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

/// A cell: bits of the latitude at even positions, bits of the longitude at odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) bits: u64,
    pub(super) steps: u32,
}

/// The area of a cell, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

impl Cell {
    /// The cell of a point.
    pub(super) fn of(point: Point, steps: u32) -> Self {
        Self::within(point, steps, LATITUDE_MAX)
    }

    /// The cell of a point on a map with latitudes up to `latitude_max`.
    pub(super) fn within(point: Point, steps: u32, latitude_max: f64) -> Self {
        let place = |degrees: f64, max: f64| {
            ((degrees + max) / (max + max) * f64::from(1u32 << steps)) as u32
        };
        let latitude = place(point.latitude, latitude_max);
        let longitude = place(point.longitude, LONGITUDE_MAX);
        Self { bits: spread(latitude) | spread(longitude) << 1, steps }
    }

    /// The smallest cell that a score represents, even if the score is not one of a cell.
    pub(super) fn of_score(score: f64) -> Self {
        let bits = if score < 0.0 { score as i64 as u64 } else { score as u64 };
        Self { bits, steps: STEPS_MAX }
    }

    /// The scores of the points in the cell: the first (inclusive) and the end (exclusive).
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEPS_MAX - self.steps);
        ((self.bits << shift) as f64, ((self.bits + 1) << shift) as f64)
    }

    fn latitude(self) -> u32 {
        gather(self.bits)
    }

    fn longitude(self) -> u32 {
        gather(self.bits >> 1)
    }

    pub(super) fn area(self) -> Area {
        let edge = |place: u32, max: f64| {
            -max + (f64::from(place) / f64::from(1u32 << self.steps)) * (max + max)
        };
        let (x, y) = (self.longitude(), self.latitude());
        Area {
            west: edge(x, LONGITUDE_MAX),
            east: edge(x.wrapping_add(1), LONGITUDE_MAX),
            south: edge(y, LATITUDE_MAX),
            north: edge(y.wrapping_add(1), LATITUDE_MAX),
        }
    }

    /// The centre of the cell.
    pub(super) fn point(self) -> Point {
        let Area { west, east, south, north } = self.area();
        Point {
            longitude: f64::midpoint(west, east).clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
            latitude: f64::midpoint(south, north).clamp(-LATITUDE_MAX, LATITUDE_MAX),
        }
    }

    /// The cell of the same size that many cells to the east and to the north. At an edge of the map it wraps around
    /// to the opposite one.
    pub(super) fn neighbour(self, east: i32, north: i32) -> Self {
        let mask = (1u32 << self.steps) - 1;
        let moved = |place: u32, by: i32| match by {
            0 => place,
            _ => place.wrapping_add_signed(by) & mask,
        };
        let (x, y) = (moved(self.longitude(), east), moved(self.latitude(), north));
        Self { bits: spread(y) | spread(x) << 1, ..self }
    }
}

/// How far bits move apart at each step, and the mask of those then in place.
const SPREADING: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// Moves each bit to twice its position.
fn spread(bits: u32) -> u64 {
    SPREADING.iter().fold(u64::from(bits), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Moves the bits at even positions together again.
fn gather(bits: u64) -> u32 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let steps = SPREADING.iter().rev().map(|(shift, _)| shift);
    let masks = SPREADING.iter().rev().skip(1).map(|(_, mask)| *mask).chain([u64::from(u32::MAX)]);
    steps.zip(masks).fold(bits & EVEN, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn palermo_has_the_score_that_redis_gives_it() {
        let palermo = Point { longitude: 13.361_389, latitude: 38.115_556 };
        let cell = Cell::of(palermo, STEPS_MAX);
        assert_eq!(cell.bits, 3_479_099_956_230_698);
        assert_eq!(cell.scores().0, 3_479_099_956_230_698.0);
        assert_eq!(Cell::of_score(3_479_099_956_230_698.0), cell);
    }

    #[test]
    fn beyond_an_edge_is_the_opposite_one() {
        let corner = Cell { bits: 0, steps: 3 };
        assert_eq!(corner.neighbour(-1, -1), Cell { bits: 0b11_1111, steps: 3 });
        assert_eq!(corner.neighbour(-1, -1).neighbour(1, 1), corner);
    }

    proptest! {
        #[test]
        fn bits_come_back(bits: u32) {
            prop_assert_eq!(gather(spread(bits)), bits);
            prop_assert_eq!(gather(spread(bits) << 1 >> 1 | spread(!bits) << 1), bits);
        }

        #[test]
        fn a_point_lies_in_its_cell(
            longitude in -LONGITUDE_MAX..LONGITUDE_MAX,
            latitude in -LATITUDE_MAX..LATITUDE_MAX,
            steps in 1..=STEPS_MAX,
        ) {
            let point = Point { longitude, latitude };
            let Area { west, east, south, north } = Cell::of(point, steps).area();
            let slack = 1e-12;
            prop_assert!((west - slack..=east + slack).contains(&longitude));
            prop_assert!((south - slack..=north + slack).contains(&latitude));
            let (first, end) = Cell::of(point, steps).scores();
            let score = Cell::of(point, STEPS_MAX).scores().0;
            prop_assert!((first..end).contains(&score));
        }
    }
}
