//! Frequent words, each stored once and referred to by number.

use std::collections::HashMap;

/// Words in the order of their first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    words: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    /// The number of a word.
    pub fn number(&mut self, word: &str) -> u32 {
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let number = self.words.len() as u32;
        self.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }

    /// All words.
    pub fn into_words(self) -> Vec<String> {
        self.words
    }
}
