//! A page whose timeline stays on a server.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_timeline::{Chunk, Class, Head};
use serde::Serialize;

use crate::pack::deflate;
use crate::page::{begin, end};

/// Where the sections of each chunk are in a file.
#[derive(Clone, Debug, Default)]
pub struct Places {
    chunks: Vec<[(u64, u64); Class::ALL.len()]>,
    length: u64,
}

/// A head with the places of its chunks.
#[derive(Serialize)]
struct Placed<'a> {
    #[serde(flatten)]
    head: &'a Head,
    places: &'a [[(u64, u64); Class::ALL.len()]],
}

impl Places {
    /// Appends a chunk to the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn add(&mut self, chunk: &Chunk, file: &mut dyn Write) -> io::Result<()> {
        let mut places = [(0, 0); Class::ALL.len()];
        for (place, section) in places.iter_mut().zip(&chunk.sections) {
            if section.is_empty() {
                continue;
            }
            let deflated = deflate(section);
            file.write_all(&deflated)?;
            *place = (self.length, deflated.len() as u64);
            self.length += deflated.len() as u64;
        }
        self.chunks.push(places);
        Ok(())
    }

    /// What the page requests first, as JSON.
    pub fn head(&self, head: &Head) -> Vec<u8> {
        serde_json::to_vec(&Placed { head, places: &self.chunks }).expect("plain data")
    }

    /// The coarse zoom level, deflated.
    pub fn overview(&self, head: &Head) -> Vec<u8> {
        deflate(&head.overview)
    }
}

/// A page that requests its timeline from a server.
pub fn served_page(title: &str, reasons: &BTreeMap<String, String>) -> Vec<u8> {
    let mut page = Vec::new();
    let written = begin(&mut page, title)
        .and_then(|()| writeln!(page, "<div id=\"timelines\" data-count=\"1\" data-served></div>"))
        .and_then(|()| end(&mut page, reasons));
    written.expect("memory takes everything");
    page
}
