//! Text inside HTML.

use std::fmt::{self, Display, Write};

/// Text without anything that browsers interpret as markup.
pub(crate) struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '<' => self.0.write_str("&lt;")?,
                '>' => self.0.write_str("&gt;")?,
                '&' => self.0.write_str("&amp;")?,
                '"' => self.0.write_str("&quot;")?,
                '\'' => self.0.write_str("&#39;")?,
                // A name may contain any byte; XML and some browsers refuse these.
                c if c.is_control() && c != '\n' && c != '\t' => self.0.write_char('\u{fffd}')?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// JSON for a script element: no tag in it can end the element.
pub(crate) fn json_in_script(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data").replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(Escaped("<b a=\"1\">&'\u{1}").to_string(), "&lt;b a=&quot;1&quot;&gt;&amp;&#39;\u{fffd}");
        assert_eq!(json_in_script(&"</script>"), "\"\\u003c/script>\"");
    }
}
