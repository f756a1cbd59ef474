//! Distances on the earth, and what lies within a circle or a box around a point.

use super::cell::{Area, Cell, LATITUDE_MAX, Point, STEPS_MAX};

/// The mean radius of the earth in metres, as in Redis.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;

/// Half the width of a web map at the equator, in metres.
const MAP_HALF_M: f64 = 20_037_726.37;

/// The area to search, around a centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Circle { radius_m: f64 },
    Box { width_m: f64, height_m: f64 },
}

/// The great-circle distance of two points in metres, by the haversine formula on a sphere.
pub(super) fn distance_m(a: Point, b: Point) -> f64 {
    let v = ((b.longitude.to_radians() - a.longitude.to_radians()) / 2.0).sin();
    if v == 0.0 {
        return along_meridian_m(a.latitude, b.latitude);
    }
    let (a, b) = (a.latitude.to_radians(), b.latitude.to_radians());
    let u = ((b - a) / 2.0).sin();
    2.0 * EARTH_RADIUS_M * (u * u + a.cos() * b.cos() * v * v).sqrt().asin()
}

fn along_meridian_m(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (b.to_radians() - a.to_radians()).abs()
}

impl Shape {
    /// The distance of a point from the centre, in metres, if the point lies within the shape.
    pub(super) fn distance_within_m(self, centre: Point, point: Point) -> Option<f64> {
        match self {
            Self::Circle { radius_m } => {
                Some(distance_m(centre, point)).filter(|distance| *distance <= radius_m)
            }
            Self::Box { width_m, height_m } => {
                let beside = Point { longitude: centre.longitude, ..point };
                let is_within = along_meridian_m(point.latitude, centre.latitude) <= height_m / 2.0
                    && distance_m(point, beside) <= width_m / 2.0;
                is_within.then(|| distance_m(centre, point))
            }
        }
    }

    /// Half of the width and half of the height, in metres.
    fn halves_m(self) -> (f64, f64) {
        match self {
            Self::Circle { radius_m } => (radius_m, radius_m),
            Self::Box { width_m, height_m } => (width_m / 2.0, height_m / 2.0),
        }
    }

    /// The distance of the farthest point from the centre, in metres.
    fn reach_m(self) -> f64 {
        match (self, self.halves_m()) {
            (Self::Circle { radius_m }, _) => radius_m,
            (Self::Box { .. }, (x, y)) => x.hypot(y),
        }
    }

    /// The bounding box. Its east and west edges are those where the shape is widest.
    fn edges(self, centre: Point) -> Area {
        let (x_m, y_m) = self.halves_m();
        let Point { longitude, latitude } = centre;
        let y = (y_m / EARTH_RADIUS_M).to_degrees();
        let widest = if latitude < 0.0 { latitude - y } else { latitude + y };
        let x = (x_m / EARTH_RADIUS_M / widest.to_radians().cos()).to_degrees();
        Area { west: longitude - x, east: longitude + x, south: latitude - y, north: latitude + y }
    }

    /// The cells that together cover the shape: the centre's own, and those around it that are needed.
    pub(super) fn cells(self, centre: Point) -> Vec<Cell> {
        /// To the north, south, east, west, and to the corners. Redis finds points in this order, and returns them
        /// in it if no other order is asked for.
        const AROUND: [(i32, i32); 8] =
            [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let edges = self.edges(centre);
        let mut cell = Cell::of(centre, steps_for(self.reach_m(), centre.latitude));
        let [north, south, east, west] =
            [(0, 1), (0, -1), (1, 0), (-1, 0)].map(|(x, y)| cell.neighbour(x, y).area());
        let is_too_small = north.north < edges.north
            || south.south > edges.south
            || east.east < edges.east
            || west.west > edges.west;
        if is_too_small && cell.steps > 1 {
            cell = Cell::of(centre, cell.steps - 1);
        }
        let own = cell.area();
        let is_needed = |(x, y): (i32, i32)| {
            let is_beyond = y < 0 && own.south < edges.south
                || y > 0 && own.north > edges.north
                || x < 0 && own.west < edges.west
                || x > 0 && own.east > edges.east;
            cell.steps < 2 || !is_beyond
        };
        let mut cells = vec![cell];
        for (x, y) in AROUND.into_iter().filter(|side| is_needed(*side)) {
            let neighbour = cell.neighbour(x, y);
            // Large cells may have the same neighbour on two sides.
            if !cells.contains(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells
    }
}

/// The number of steps at which a point's cell and its neighbours cover, mostly, everything within `reach_m`.
fn steps_for(reach_m: f64, latitude: f64) -> u32 {
    /// From these latitudes on, the web map is stretched so much that cells must be larger.
    const WIDE_LATITUDES: [f64; 2] = [66.0, 80.0];
    if reach_m == 0.0 {
        return STEPS_MAX;
    }
    let mut steps = 1i32;
    let mut reach_m = reach_m;
    while reach_m < MAP_HALF_M && steps < 2 * STEPS_MAX as i32 {
        reach_m *= 2.0;
        steps += 1;
    }
    let wide = WIDE_LATITUDES.iter().filter(|from| latitude.abs() > **from).count() as i32;
    (steps - 2 - wide).clamp(1, STEPS_MAX as i32) as u32
}

/// Whether a point can be stored.
pub(super) fn is_on_map(point: Point) -> bool {
    point.longitude.abs() <= super::cell::LONGITUDE_MAX && point.latitude.abs() <= LATITUDE_MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PALERMO: Point = Point { longitude: 13.361_389, latitude: 38.115_556 };
    const CATANIA: Point = Point { longitude: 15.087_269, latitude: 37.502_669 };

    #[test]
    fn palermo_is_166_kilometres_from_catania() {
        assert_eq!(format!("{:.0}", distance_m(PALERMO, CATANIA)), "166274");
        let within = |radius_m| Shape::Circle { radius_m }.distance_within_m(PALERMO, CATANIA);
        assert!(within(166_275.0).is_some() && within(166_273.0).is_none());
    }

    proptest! {
        /// Away from the poles, where the actual shape of a search differs from the requested one.
        #[test]
        fn what_lies_within_lies_in_a_cell(
            longitude in -170.0..170.0f64,
            latitude in -60.0..60.0f64,
            angle in 0.0..std::f64::consts::TAU,
            part in 0.0..1.0f64,
            radius_m in 1.0..500_000.0f64,
        ) {
            let centre = Point { longitude, latitude };
            let (x, y) = (angle.cos() * part * radius_m, angle.sin() * part * radius_m);
            let point = Point {
                longitude: longitude + (x / EARTH_RADIUS_M / latitude.to_radians().cos()).to_degrees(),
                latitude: latitude + (y / EARTH_RADIUS_M).to_degrees(),
            };
            let shapes =
                [Shape::Circle { radius_m }, Shape::Box { width_m: 2.0 * radius_m, height_m: radius_m }];
            for shape in shapes {
                let score = Cell::of(point, STEPS_MAX).scores().0;
                let is_found = shape.cells(centre).iter().any(|cell| {
                    let (first, end) = cell.scores();
                    (first..end).contains(&score)
                });
                prop_assert!(is_found || shape.distance_within_m(centre, point).is_none());
            }
        }
    }
}
