//! A page, from its blocks to its bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schedlab_timeline::Class;

use crate::escape::{Escaped, json_in_script};
use crate::pack::Packed;
use crate::pictures::{Cumulative, Dots, Matrix, Shares};
use crate::tables::{self, Table};

const STYLE: &str = concat!(include_str!("../assets/uplot.min.css"), include_str!("../assets/style.css"));

const SCRIPTS: [&str; 8] = [
    include_str!("../assets/data.js"),
    include_str!("../assets/raster.js"),
    include_str!("../assets/pane.js"),
    include_str!("../assets/panel.js"),
    include_str!("../assets/board.js"),
    include_str!("../assets/perfetto.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/main.js"),
];

const UPLOT: &str = include_str!("../assets/uplot.min.js");
const UPLOT_LICENCE: &str = include_str!("../assets/uplot.LICENSE");

/// A part of a page.
#[derive(Debug)]
pub enum Block {
    /// The answer, which comes first.
    Verdict(String),
    /// A heading.
    Heading(String),
    /// A sentence or several.
    Text(String),
    /// A remark in smaller print.
    Note(String),
    /// Text whose lines stay as they are.
    Preformatted(String),
    /// A table.
    Table(Table),
    /// A table that is shown on demand.
    Folded(String, Table),
    /// Every run as a dot.
    Dots(Dots),
    /// Cumulative curves.
    Cumulative(Cumulative),
    /// Shares before and after.
    Shares(Shares),
    /// How often something moved from one place to another.
    Matrix(Matrix),
    /// Places in the timeline, the worst first.
    Places(Vec<Place>),
    /// Traces that share one zoom.
    Timelines(Vec<Packed>),
}

/// A place in the timeline, and what is there.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// First instant, s since the start of the trace.
    pub from: f64,
    /// Last instant.
    pub to: f64,
    /// The CPU to show.
    pub cpu: Option<u16>,
    /// A description of what is there, in a sentence.
    pub what: String,
    /// Details about it.
    pub lines: Vec<String>,
}

/// A page.
#[derive(Debug, Default)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// What is on it, in order.
    pub blocks: Vec<Block>,
    /// Sentences for the reasons of decisions, by name.
    pub reasons: BTreeMap<String, String>,
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Page {
        Page { title: title.to_owned(), ..Page::default() }
    }

    /// Adds a block.
    pub fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        begin(out, &self.title)?;
        for block in &self.blocks {
            write_block(out, block)?;
        }
        end(out, &self.reasons)
    }
}

/// The page up to its first block.
pub(crate) fn begin(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"schedlab {}\">\n<title>{}</title>\n<style>{STYLE}</style></head>\n<body>\n\
         <header><h1>{}</h1><button id=\"theme\" hidden>Dark or light</button></header>",
        env!("CARGO_PKG_VERSION"),
        Escaped(title),
        Escaped(title)
    )
}

/// The page after its last block.
pub(crate) fn end(out: &mut dyn Write, reasons: &BTreeMap<String, String>) -> io::Result<()> {
    writeln!(out, "<script>\n/*\n{UPLOT_LICENCE}*/\n{UPLOT}\n</script>")?;
    writeln!(out, "<script>\n\"use strict\";\nwindow.schedlabReasons = {};", json_in_script(reasons))?;
    writeln!(out, "{{")?;
    for script in SCRIPTS {
        out.write_all(script.as_bytes())?;
    }
    writeln!(out, "}}\n</script>\n</body></html>")
}

fn write_block(out: &mut dyn Write, block: &Block) -> io::Result<()> {
    match block {
        Block::Verdict(text) => writeln!(out, "<p class=\"verdict\">{}</p>", Escaped(text)),
        Block::Heading(text) => writeln!(out, "<h2>{}</h2>", Escaped(text)),
        Block::Text(text) => writeln!(out, "<p>{}</p>", Escaped(text)),
        Block::Note(text) => writeln!(out, "<p class=\"note\">{}</p>", Escaped(text)),
        Block::Preformatted(text) => writeln!(out, "<pre>{}</pre>", Escaped(text)),
        Block::Table(table) => write!(out, "{table}"),
        Block::Folded(caption, table) => {
            writeln!(out, "<details><summary>{}</summary>{table}</details>", Escaped(caption))
        }
        Block::Dots(dots) => writeln!(out, "{dots}"),
        Block::Cumulative(curves) => {
            writeln!(
                out,
                "<figure class=\"chart\"></figure><script type=\"application/json\" data-chart=\"cumulative\">{}</script>",
                json_in_script(curves)
            )?;
            writeln!(out, "<noscript>{}</noscript>", curves.table())
        }
        Block::Shares(shares) => writeln!(out, "{shares}"),
        Block::Matrix(matrix) => writeln!(out, "{matrix}"),
        Block::Places(places) => places.iter().try_for_each(|place| write_place(out, place)),
        Block::Timelines(timelines) => write_timelines(out, timelines),
    }
}

/// A place, with a button that shows it if scripts are enabled.
fn write_place(out: &mut dyn Write, place: &Place) -> io::Result<()> {
    let cpu = place.cpu.map_or(String::new(), |cpu| format!(" data-cpu=\"{cpu}\""));
    writeln!(
        out,
        "<p><button class=\"link\" data-from=\"{}\" data-to=\"{}\"{cpu}>{:.6} s to {:.6} s</button> {}</p>",
        place.from,
        place.to,
        place.from,
        place.to,
        Escaped(&place.what)
    )?;
    if place.lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "<ul>")?;
    place.lines.iter().try_for_each(|line| writeln!(out, "<li>{}</li>", Escaped(line)))?;
    writeln!(out, "</ul>")
}

fn write_timelines(out: &mut dyn Write, timelines: &[Packed]) -> io::Result<()> {
    for sentence in timelines.iter().flat_map(|timeline| &timeline.left_out) {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(sentence))?;
    }
    writeln!(out, "<div id=\"timelines\" data-count=\"{}\"></div>", timelines.len())?;
    writeln!(out, "<noscript><p>The timeline needs scripts; the tables below do not.</p></noscript>")?;
    for timeline in timelines {
        let head = &timeline.head;
        writeln!(
            out,
            "<details><summary>{}</summary>{}{}</details>",
            Escaped(tables::caption(head)),
            tables::of_cpus(head),
            tables::of_tasks(head)
        )?;
    }
    for (index, timeline) in timelines.iter().enumerate() {
        data(out, &format!("t{index}-head"), &timeline.deflated_head)?;
        data(out, &format!("t{index}-overview"), &timeline.overview)?;
        for (nth, sections) in timeline.chunks.iter().enumerate() {
            for class in Class::ALL {
                if let Some(section) = &sections[class as usize]
                    && !section.is_empty()
                {
                    data(out, &format!("t{index}-{nth}-{}", class.name()), section)?;
                }
            }
        }
    }
    Ok(())
}

/// Bytes in the page, which scripts find by name.
fn data(out: &mut dyn Write, id: &str, bytes: &[u8]) -> io::Result<()> {
    writeln!(out, "<script type=\"text/plain\" id=\"{id}\">{}</script>", STANDARD.encode(bytes))
}
