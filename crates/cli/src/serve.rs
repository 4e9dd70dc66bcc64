//! Serves a page and the data behind it to a browser on this host.
//!
//! It only listens on loopback, only answers GET, and only serves a few fixed names, so nothing else on the host is
//! accessible. Data is read from its file in pieces: memory does not grow with the trace.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The content that is served.
pub struct Site {
    /// The page.
    pub page: Vec<u8>,
    /// The first data that the page requests, as JSON.
    pub head: Vec<u8>,
    /// The coarse zoom level.
    pub overview: Vec<u8>,
    /// The sections, requested by range.
    pub data: File,
}

/// Bytes read from the file at once.
const PIECE: usize = 64 << 10;

/// Maximum size of a request, bytes.
const REQUEST: u64 = 16 << 10;

/// Maximum number of simultaneous connections.
const CONNECTIONS: usize = 32;

/// Listens on loopback, at the given port or at any free one.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// Answers requests until the process ends.
pub fn serve(listener: &TcpListener, site: Site) -> io::Result<()> {
    let port = listener.local_addr()?.port();
    let site = Arc::new(site);
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (site, open) = (Arc::clone(&site), Arc::clone(&open));
        std::thread::spawn(move || {
            // A browser that disconnects is not an error.
            let _ = answer_all(&stream, &site, port);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// Answers the requests of one connection.
fn answer_all(stream: &TcpStream, site: &Site, port: u16) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    while let Some(request) = Request::read(&mut input)? {
        answer(&mut { stream }, site, port, &request)?;
    }
    Ok(())
}

/// The parts of a request that are needed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    line: String,
    host: String,
    range: Option<String>,
}

impl Request {
    fn read(input: &mut impl BufRead) -> io::Result<Option<Request>> {
        let mut input = input.take(REQUEST);
        let mut request = Request::default();
        let mut line = String::new();
        loop {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let text = line.trim_end();
            if text.is_empty() {
                return Ok((!request.line.is_empty()).then_some(request));
            }
            if request.line.is_empty() {
                text.clone_into(&mut request.line);
            } else if let Some((name, value)) = text.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "host" => value.trim().clone_into(&mut request.host),
                    "range" => request.range = Some(value.trim().to_owned()),
                    _ => {}
                }
            }
        }
    }

    /// The requested name.
    fn path(&self) -> Option<&str> {
        let target = self.line.strip_prefix("GET ")?.split(' ').next()?;
        target.split(['?', '#']).next()
    }
}

fn answer(out: &mut impl Write, site: &Site, port: u16, request: &Request) -> io::Result<()> {
    // A page of another site may make a browser send requests here under that site's name.
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if !own.contains(&request.host) {
        return head(out, "403 Forbidden", "text/plain", 0, "");
    }
    match request.path() {
        Some("/") => whole(out, "text/html; charset=utf-8", &site.page),
        Some("/head") => whole(out, "application/json", &site.head),
        Some("/overview") => whole(out, "application/octet-stream", &site.overview),
        Some("/data") => part(out, &site.data, request.range.as_deref()),
        Some(_) => head(out, "404 Not Found", "text/plain", 0, ""),
        None => head(out, "405 Method Not Allowed", "text/plain", 0, "Allow: GET\r\n"),
    }
}

fn head(out: &mut impl Write, status: &str, kind: &str, length: u64, more: &str) -> io::Result<()> {
    let fixed = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
    write!(out, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{fixed}{more}\r\n")
}

fn whole(out: &mut impl Write, kind: &str, bytes: &[u8]) -> io::Result<()> {
    head(out, "200 OK", kind, bytes.len() as u64, "")?;
    out.write_all(bytes)
}

/// A range of the file; the whole file is never sent at once.
fn part(out: &mut impl Write, file: &File, range: Option<&str>) -> io::Result<()> {
    let size = file.metadata()?.len();
    let Some((first, last)) = range.and_then(|range| bounds(range, size)) else {
        let more = format!("Content-Range: bytes */{size}\r\n");
        return head(out, "416 Range Not Satisfiable", "text/plain", 0, &more);
    };
    let more = format!("Content-Range: bytes {first}-{last}/{size}\r\nAccept-Ranges: bytes\r\n");
    head(out, "206 Partial Content", "application/octet-stream", last - first + 1, &more)?;
    let mut piece = vec![0; PIECE];
    let mut at = first;
    while at <= last {
        let wanted = (last - at + 1).min(PIECE as u64) as usize;
        file.read_exact_at(&mut piece[..wanted], at)?;
        out.write_all(&piece[..wanted])?;
        at += wanted as u64;
    }
    Ok(())
}

/// First and last byte of `bytes=0-99`, if the file has them.
fn bounds(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < size).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let mut data = tempfile::tempfile().unwrap();
        data.write_all(b"0123456789").unwrap();
        Site { page: b"<page>".to_vec(), head: b"{}".to_vec(), overview: Vec::new(), data }
    }

    fn ask(request: &str) -> String {
        let request = Request::read(&mut request.as_bytes()).unwrap().unwrap();
        let mut out = Vec::new();
        answer(&mut out, &site(), 80, &request).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_range_is_answered_with_its_bytes() {
        let text = ask("GET /data HTTP/1.1\r\nHost: 127.0.0.1:80\r\nRange: bytes=2-4\r\n\r\n");
        assert!(
            text.starts_with("HTTP/1.1 206") && text.contains("Content-Range: bytes 2-4/10\r\n"),
            "{text}"
        );
        assert!(text.ends_with("\r\n\r\n234"), "{text}");
        for wrong in ["bytes=2-10", "bytes=4-2", "bytes=-3", "lines=1-2"] {
            let text = ask(&format!("GET /data HTTP/1.1\r\nHost: localhost:80\r\nRange: {wrong}\r\n\r\n"));
            assert!(text.starts_with("HTTP/1.1 416"), "{wrong}: {text}");
        }
    }

    #[test]
    fn nothing_else_of_the_host_is_given_away() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n", "200"),
            ("GET /../etc/passwd HTTP/1.1\r\nHost: localhost:80\r\n\r\n", "404"),
            ("POST / HTTP/1.1\r\nHost: localhost:80\r\n\r\n", "405"),
            ("GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n", "403"),
            ("GET / HTTP/1.1\r\n\r\n", "403"),
        ] {
            assert!(ask(request).starts_with(&format!("HTTP/1.1 {status}")), "{request}");
        }
    }

    #[test]
    fn it_listens_on_loopback_alone() {
        assert!(listen(0).unwrap().local_addr().unwrap().ip().is_loopback());
    }
}
