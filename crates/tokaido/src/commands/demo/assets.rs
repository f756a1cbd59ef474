//! The demo's own data and procedures.

use std::{fs, io, path::Path};

/// The 53 stations, with both ends of the road.
pub(crate) const STATIONS: &[u8] = include_bytes!("../../../data/stations.tsv");

/// The database of the stations.
pub(crate) const DATABASE: &str = "stations";

/// A file from the repository's `procedures/`, by name.
macro_rules! example {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../procedures/", $name)))
    };
}

/// The repository's examples, and a file for the demo alone.
pub(crate) const PROCEDURES: [(&str, &str); 5] = [
    example!("companies.lua"),
    example!("hello.lua"),
    example!("hits.lua"),
    ("journey.lua", include_str!("../../../data/journey.lua")),
    example!("stations.lua"),
];

/// Writes the procedure files, as an operator would.
pub(crate) fn install_procedures(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in PROCEDURES {
        fs::write(directory.join(name), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<&'static str>> {
        let text = std::str::from_utf8(STATIONS).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split('\t').collect()).collect()
    }

    #[test]
    fn every_example_of_the_repository_comes_along() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../procedures");
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".lua"));
        names.push("journey.lua".to_owned());
        names.sort_unstable();
        assert_eq!(names, PROCEDURES.map(|(name, _)| name));
    }

    #[test]
    fn the_road_has_53_stations_between_its_ends() {
        let rows = rows();
        assert_eq!(rows.len(), 1 + 53 + 1);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), 5, "{row:?}");
            assert_eq!(row[0], format!("{index:02}"));
            assert!(row.iter().all(|column| !column.is_empty()), "{row:?}");
        }
        let mut names: Vec<_> = rows.iter().map(|row| row[2]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn the_road_leads_away_from_nihonbashi() {
        let km: Vec<f64> = rows().iter().map(|row| row[4].parse().unwrap()).collect();
        assert_eq!(km[0], 0.0);
        assert!(km.is_sorted_by(|a, b| a < b));
        assert!((492.0..=496.0).contains(&km[54]), "{}", km[54]);
    }

    #[test]
    fn a_province_is_crossed_once() {
        let mut provinces: Vec<_> = rows().iter().map(|row| row[3]).collect();
        provinces.dedup();
        let road = [
            "Musashi",
            "Sagami",
            "Izu",
            "Suruga",
            "Totomi",
            "Mikawa",
            "Owari",
            "Ise",
            "Omi",
            "Yamashiro",
        ];
        assert_eq!(provinces, road);
    }
}
