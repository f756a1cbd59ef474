//! Charts of items, as SVG: bars with their spread, curves, and where the time went.

use std::fmt::Display;

use plotters::{
    coord::{Shift, combinators::IntoLogRange},
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::cells;
use crate::{
    statistics::Summary,
    suite::{Axis, Item, Row},
};

/// A chart cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a chart: {0}")]
pub struct ChartError(String);

/// A kind of chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chart {
    /// A bar for each subject, with the quartiles, and a dot for each sample.
    Bars,
    /// A curve for each subject.
    Curves,
    /// A bar for each subject, divided into client and server, and into user and kernel time.
    Split,
}

/// In pixels: as wide as the page on a phone, and scaled up a little elsewhere.
const WIDTH: u32 = 440;
const ROW_HEIGHT: u32 = 34;
const BAR_HEIGHT: i32 = 14;
const MARGIN: i32 = 8;
const CURVES_HEIGHT: u32 = 320;
const LEGEND_LINE: i32 = 18;
const FONT: i32 = 13;

/// Placeholders for colours, which the page defines: it has a light and a dark set of them.
const INK: RGBColor = RGBColor(1, 1, 1);
const FAINT: RGBColor = RGBColor(2, 2, 2);
const OURS: RGBColor = RGBColor(3, 3, 3);
const SERIES: [RGBColor; 8] = [
    RGBColor(3, 3, 3),
    RGBColor(4, 4, 4),
    RGBColor(5, 5, 5),
    RGBColor(6, 6, 6),
    RGBColor(7, 7, 7),
    RGBColor(8, 8, 8),
    RGBColor(9, 9, 9),
    RGBColor(10, 10, 10),
];
const THEIRS: RGBColor = RGBColor(4, 4, 4);

/// The names of those colours in a style sheet, in the order of their numbers, from 1.
pub(super) const COLOURS: [&str; 10] =
    ["--ink", "--faint", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];

/// The definitions of those names, light and dark.
pub(super) const COLOURS_OF_PAGE: &str = include_str!("colours.css");

fn failed(error: impl Display) -> ChartError {
    ChartError(error.to_string())
}

/// The charts that an item has data for.
pub(super) fn kinds(item: &Item) -> Vec<Chart> {
    let mut kinds = Vec::new();
    if item.rows.iter().any(|row| !row.samples.is_empty()) {
        kinds.push(Chart::Bars);
    }
    if item.rows.iter().any(is_drawn) {
        kinds.push(Chart::Curves);
    }
    if item.rows.iter().any(|row| row.split.is_some()) {
        kinds.push(Chart::Split);
    }
    kinds
}

/// Whether a row has a curve. Both axes are logarithmic, so zeros do not count.
fn is_drawn(row: &Row) -> bool {
    row.curve.iter().filter(|(_, value)| *value > 0.0).count() > 1
}

/// Draws an item as an SVG element whose colours are names in a style sheet, such as `var(--ink)`.
///
/// # Errors
/// If the plotting library returns an error.
pub fn chart(item: &Item, kind: Chart) -> Result<String, ChartError> {
    let height = match kind {
        Chart::Bars => ROW_HEIGHT * item.rows.len() as u32 + 2 * MARGIN as u32,
        Chart::Split => ROW_HEIGHT * item.rows.len() as u32 + 40 + 2 * MARGIN as u32,
        Chart::Curves => CURVES_HEIGHT + LEGEND_LINE as u32 * item.rows.len() as u32,
    };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        match kind {
            Chart::Bars => bars(&area, item)?,
            Chart::Curves => curves(&area, item)?,
            Chart::Split => split(&area, item)?,
        }
        area.present().map_err(failed)?;
    }
    Ok(dressed(&svg, height))
}

/// The same as a self-contained file, with its colours, light and dark.
///
/// # Errors
/// If the plotting library returns an error.
pub fn picture(item: &Item, kind: Chart) -> Result<String, ChartError> {
    let element = chart(item, kind)?;
    let (head, rest) = element.split_once('>').unwrap_or((&element, ""));
    Ok(format!("{head} width=\"{WIDTH}\">\n<style>\n{COLOURS_OF_PAGE}</style>{rest}"))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Names the colours, and makes the picture as wide as the space it has.
fn dressed(svg: &str, height: u32) -> String {
    let mut svg = svg.to_owned();
    for (number, name) in (1..).zip(COLOURS) {
        svg = svg.replace(
            &format!("\"#{number:02X}{number:02X}{number:02X}\""),
            &format!("\"var({name})\""),
        );
    }
    let head = format!("<svg width=\"{WIDTH}\" height=\"{height}\"");
    let own = "<svg role=\"img\"";
    svg.replacen(&head, own, 1)
}

fn font(colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().color(&colour)
}

fn text(area: &Area<'_>, text: &str, place: (i32, i32), to: HPos) -> Result<(), ChartError> {
    let style = font(INK).pos(Pos::new(to, VPos::Center));
    area.draw_text(text, &style, place).map_err(failed)
}

fn rectangle(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    colour: RGBColor,
) -> Result<(), ChartError> {
    area.draw(&Rectangle::new([from, to], colour.filled())).map_err(failed)
}

/// Bars start at zero, so that lengths can be compared; each row has a line of text and one with the bar.
fn bars(area: &Area<'_>, item: &Item) -> Result<(), ChartError> {
    let greatest = item.rows.iter().flat_map(|row| &row.samples).copied().fold(0.0, f64::max);
    let room = f64::from(WIDTH as i32 - 2 * MARGIN);
    let x = |value: f64| MARGIN + (value / greatest.max(f64::MIN_POSITIVE) * room) as i32;
    for (index, row) in item.rows.iter().enumerate() {
        let top = MARGIN + index as i32 * ROW_HEIGHT as i32;
        text(area, &cells::subject(row), (MARGIN, top + 6), HPos::Left)?;
        let told =
            Summary::of(&row.samples).map(|summary| cells::figure(item.unit, summary.median));
        let told = told.unwrap_or_else(|| "no figure".to_owned());
        text(area, &told, (WIDTH as i32 - MARGIN, top + 6), HPos::Right)?;
        let Some(summary) = Summary::of(&row.samples) else { continue };
        let (from, to) = (top + 15, top + 15 + BAR_HEIGHT);
        let colour = if row.is_ours { OURS } else { THEIRS };
        rectangle(area, (x(0.0), from), (x(summary.median).max(x(0.0) + 1), to), colour)?;
        // The quartiles, and each sample.
        let middle = i32::midpoint(from, to);
        rectangle(
            area,
            (x(summary.quartile_low), middle - 1),
            (x(summary.quartile_high) + 1, middle + 1),
            INK,
        )?;
        for sample in &row.samples {
            let point = Circle::new((x(*sample), middle), 2, INK.filled());
            area.draw(&point).map_err(failed)?;
        }
    }
    Ok(())
}

/// The shares of client and server in the total time: all bars have the same length.
fn split(area: &Area<'_>, item: &Item) -> Result<(), ChartError> {
    let room = f64::from(WIDTH as i32 - 2 * MARGIN);
    for (index, row) in item.rows.iter().enumerate() {
        let top = MARGIN + index as i32 * ROW_HEIGHT as i32;
        text(area, &cells::subject(row), (MARGIN, top + 6), HPos::Left)?;
        let Some(split) = row.split else { continue };
        let parts = split.parts();
        let all: f64 = parts.iter().map(|(_, time)| time).sum();
        let (from, to) = (top + 15, top + 15 + BAR_HEIGHT);
        let mut sum = 0.0;
        for ((_, time), colour) in parts.iter().zip(PARTS) {
            let x = |time: f64| MARGIN + (time / all.max(f64::MIN_POSITIVE) * room) as i32;
            rectangle(area, (x(sum), from), (x(sum + time), to), colour)?;
            sum += time;
        }
    }
    let top = MARGIN + item.rows.len() as i32 * ROW_HEIGHT as i32 + 12;
    for (index, ((name, _), colour)) in
        crate::suite::Split::default().parts().iter().zip(PARTS).enumerate()
    {
        let (left, top) = (MARGIN + index as i32 % 2 * 140, top + index as i32 / 2 * 20);
        rectangle(area, (left, top - 6), (left + 12, top + 6), colour)?;
        text(area, name, (left + 18, top), HPos::Left)?;
    }
    Ok(())
}

/// The colours of the parts of [`Split`](crate::suite::Split).
const PARTS: [RGBColor; 4] = [SERIES[2], SERIES[3], SERIES[0], SERIES[4]];

fn curves(area: &Area<'_>, item: &Item) -> Result<(), ChartError> {
    let (plot, legend) = area.split_vertically(CURVES_HEIGHT);
    let rows: Vec<&Row> = item.rows.iter().filter(|row| is_drawn(row)).collect();
    match item.axis {
        Some(Axis::Records) => {
            let name = |count: &f64| crate::units::thousands(count.round() as u64);
            curves_over(&plot, item, &rows, &|count| count, &name, "records")?;
        }
        // Quantiles are placed by what remains above them: 0.9, 0.99, 0.999 are equally spaced.
        _ => {
            let above = |quantile: f64| 1.0 / (1.0 - quantile).max(1e-9);
            let name = |above: &f64| {
                let percent = format!("{:.4}", (1.0 - 1.0 / above) * 100.0);
                format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
            };
            curves_over(&plot, item, &rows, &above, &name, "so many of the requests")?;
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let top = 9 + index as i32 * LEGEND_LINE;
        rectangle(
            &legend,
            (MARGIN, top - 2),
            (MARGIN + 20, top + 2),
            SERIES[index % SERIES.len()],
        )?;
        text(&legend, &cells::subject(row), (MARGIN + 28, top), HPos::Left)?;
    }
    Ok(())
}

/// Both axes are logarithmic.
fn curves_over(
    area: &Area<'_>,
    item: &Item,
    rows: &[&Row],
    place: &dyn Fn(f64) -> f64,
    name: &dyn Fn(&f64) -> String,
    axis: &str,
) -> Result<(), ChartError> {
    let points = || rows.iter().flat_map(|row| &row.curve).filter(|(_, value)| *value > 0.0);
    let (mut x, mut y) = ((f64::MAX, f64::MIN_POSITIVE), (f64::MAX, f64::MIN_POSITIVE));
    for (key, value) in points() {
        x = (x.0.min(place(*key)), x.1.max(place(*key)));
        y = (y.0.min(*value), y.1.max(*value));
    }
    if x.0 >= x.1 {
        return Err(ChartError("its curves have one point".to_owned()));
    }
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d((x.0..x.1).log_scale(), (y.0 / 1.3..y.1 * 1.3).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .label_style(font(INK))
        .axis_desc_style(font(INK))
        .axis_style(FAINT)
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .x_label_formatter(name)
        .y_label_formatter(&|value| cells::figure(item.unit, *value))
        .x_desc(axis)
        .draw()
        .map_err(failed)?;
    for (index, row) in rows.iter().enumerate() {
        let colour = SERIES[index % SERIES.len()];
        let points = row.curve.iter().filter(|(_, value)| *value > 0.0);
        let points: Vec<(f64, f64)> = points.map(|(key, value)| (place(*key), *value)).collect();
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
        chart.draw_series(line).map_err(failed)?;
        let dots = points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
        chart.draw_series(dots).map_err(failed)?;
    }
    Ok(())
}
