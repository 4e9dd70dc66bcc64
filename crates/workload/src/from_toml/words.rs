//! Cuts the text of ops into words.
//!
//! Ops are separated by semicolons or line ends, words by blanks. Quotes and brackets keep a text with blanks
//! together: `uniform(1ms, 2ms)` is one word.

/// The words of each op in a text.
pub(super) fn ops(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut ops = Vec::new();
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0;
    let mut quoted = false;
    let mut chars = text.chars();
    // A quoted word may be empty, so its beginning is remembered separately.
    let mut begun = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = !quoted;
                begun = true;
            }
            '\\' if quoted => word.extend(chars.next()),
            _ if quoted => word.push(c),
            '(' => {
                depth += 1;
                word.push(c);
            }
            ')' => {
                depth -= 1;
                word.push(c);
            }
            ';' | '\n' if depth == 0 => {
                end_word(&mut words, &mut word, &mut begun);
                if !words.is_empty() {
                    ops.push(std::mem::take(&mut words));
                }
            }
            c if c.is_whitespace() && depth == 0 => end_word(&mut words, &mut word, &mut begun),
            c if c.is_whitespace() => {}
            c => word.push(c),
        }
        if depth < 0 {
            return Err("a bracket is closed that was never opened".to_string());
        }
    }
    if quoted {
        return Err("a quote is never closed".to_string());
    }
    if depth > 0 {
        return Err("a bracket is never closed".to_string());
    }
    end_word(&mut words, &mut word, &mut begun);
    if !words.is_empty() {
        ops.push(words);
    }
    Ok(ops)
}

fn end_word(words: &mut Vec<String>, word: &mut String, begun: &mut bool) {
    if !word.is_empty() || *begun {
        words.push(std::mem::take(word));
    }
    *begun = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_brackets_hold_together() {
        let ops = ops("run 5ms; lock \"a b\";;\n sleep uniform( 1ms, 2ms )\nname \"\"").unwrap();
        let lines: Vec<String> = ops.iter().map(|words| words.join("|")).collect();
        assert_eq!(lines, ["run|5ms", "lock|a b", "sleep|uniform(1ms,2ms)", "name|"]);
        assert!(super::ops("lock \"a").is_err());
        assert!(super::ops("run x(").is_err());
        assert!(super::ops("run x)").is_err());
    }
}
