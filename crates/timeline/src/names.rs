//! Words that occur often, each kept once and known by its number.

use std::collections::HashMap;

/// Words in the order in which they were first met.
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
