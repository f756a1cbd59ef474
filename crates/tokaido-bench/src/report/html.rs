//! A run as a self-contained page with charts: no script, no other file, no network.

use std::fmt::Write;

use super::{
    cells,
    chart::{self, COLOURS_OF_PAGE, Chart, ChartError, chart},
    markdown::{cells_of, columns_of},
};
use crate::suite::{Item, Run, SCENARIOS};

const STYLE: &str = include_str!("page.css");

/// How to read the page.
const ABOUT: &str = "Every subject was measured in turn with the others, round by round, after a round that does not count. A ratio is formed \
                     within each round; beside its median stands the interval in which it lies with a confidence of 95 %, by bootstrap. If that \
                     interval holds 1, no difference was measurable, and the table says so. Every sample counts, outliers, too: they are the \
                     points on the bars, whose dark line goes from quartile to quartile.";

/// The page.
///
/// # Errors
/// If a chart cannot be drawn.
pub fn html(run: &Run) -> Result<String, ChartError> {
    let mut page = String::new();
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Tokaido beside its peers</title>\n<style>\n{COLOURS_OF_PAGE}{STYLE}</style>\n</head>\n<body>\n\
         <h1>Tokaido beside its peers</h1>\n"
    );
    for line in cells::circumstances(run) {
        let _ = writeln!(page, "<p class=\"about\">{}</p>", escaped(&line));
    }
    let _ = writeln!(page, "<p class=\"about\">{ABOUT}</p>");
    let mut names: Vec<&str> = run.items.iter().map(|item| item.scenario.as_str()).collect();
    names.dedup();
    page.push_str("<nav>");
    for name in &names {
        let name = escaped(name);
        let _ = write!(page, "<a href=\"#{name}\">{name}</a>");
    }
    page.push_str("</nav>\n");
    for name in names {
        let known = SCENARIOS.iter().find(|scenario| scenario.name == name);
        let (what, name) = (known.map_or("", |scenario| scenario.what), escaped(name));
        let _ = writeln!(page, "<h2 id=\"{name}\">{name}</h2>\n<p>{}</p>", escaped(what));
        let mut note = "";
        for one in run.items.iter().filter(|item| item.scenario == name) {
            item(&mut page, one, one.note != note)?;
            note = &one.note;
        }
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn item(page: &mut String, item: &Item, has_note: bool) -> Result<(), ChartError> {
    let _ = writeln!(page, "<section>\n<h3>{}</h3>", escaped(&item.name));
    if has_note {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escaped(&item.note));
    }
    for kind in chart::kinds(item) {
        let caption = match kind {
            Chart::Bars if item.unit.more_is_better() => "More is better",
            Chart::Bars => "Less is better",
            Chart::Curves => "Less is better; both axes are logarithmic",
            Chart::Split => "Where the processor time of client and server went",
        };
        let caption = if kind == Chart::Curves && item.unit.more_is_better() {
            "More is better; both axes are logarithmic"
        } else {
            caption
        };
        let picture = chart(item, kind)?;
        let _ = writeln!(page, "<figure>\n{picture}<figcaption>{caption}</figcaption>\n</figure>");
    }
    table(page, item);
    page.push_str("</section>\n");
    Ok(())
}

fn table(page: &mut String, item: &Item) {
    let rows = cells_of(item);
    let columns = columns_of(&rows);
    page.push_str("<div class=\"table\"><table>\n<tr>");
    for (_, head) in &columns {
        let _ = write!(page, "<th>{}</th>", escaped(head));
    }
    page.push_str("</tr>\n");
    for (row, cells) in item.rows.iter().zip(&rows) {
        let class = if row.is_ours { " class=\"ours\"" } else { "" };
        let _ = write!(page, "<tr{class}>");
        for (column, _) in &columns {
            let _ = write!(page, "<td>{}</td>", escaped(&cells[*column]));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

/// Escapes text for a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
