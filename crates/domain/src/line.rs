//! Single-line texts: names, labels, and output for terminals.

use std::borrow::Cow;

use crate::FieldError;

/// Returns whether a character is not allowed in a name: it ends the line, controls a terminal, or reorders the surrounding text, so that
/// people and programs would see different names.
pub fn is_unfit(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Validates a name: one line of `least` to `most` characters (Unicode code points). Returns the error of the field `path`.
pub fn check(path: &str, name: &str, least: usize, most: usize) -> Option<FieldError> {
    let length = name.chars().count();
    if length < least || length > most {
        let range = if least == 0 { format!("at most {most}") } else { format!("{least} to {most}") };
        return Some(FieldError::new(path, format!("has {length} characters; must have {range}")));
    }
    let unfit = name.chars().find(|c| is_unfit(*c))?;
    let what = "must be one line, without control characters or characters that change the text direction";
    Some(FieldError::new(path, format!("contains U+{:04X}; {what}", u32::from(unfit))))
}

/// Returns a name from another system with every disallowed character replaced by a space.
pub fn cleaned(name: &str) -> String {
    name.replace(is_unfit, " ").trim().to_owned()
}

/// Returns the text safe for terminals: characters that control it or reorder text become `\u{…}`. Line breaks stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| c != '\n' && is_unfit(c), |c| c.escape_unicode().to_string())
}

/// Escapes JSON in the same way; its strings keep their meaning.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    // Line breaks occur only between strings. All these characters are in the basic plane.
    escape(json, |c| c != '\n' && is_unfit(c), |c| format!("\\u{:04x}", u32::from(c)))
}

fn escape(text: &str, is_bad: impl Fn(char) -> bool, shown: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_bad(c) { out.push_str(&shown(c)) } else { out.push(c) }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_line_that_looks_like_what_it_is() {
        for good in ["Ada", "Łódź & Söhne", "شركة أكمي", "Familie 👨‍👩‍👧", "a\u{200f}b", "a\u{a0}b"] {
            assert_eq!(check("name", good, 1, 50), None, "{good:?}");
            assert_eq!(escaped(good), good);
        }
        for bad in ["a\nb", "a\rb", "a\tb", "\u{1b}[31mred", "a\u{7f}", "a\u{9b}31m", "a\u{202e}b", "a\u{2066}b", "a\u{2028}b", "\0"] {
            let fault = check("name", bad, 1, 50).expect("a fault");
            assert!(fault.path == "name" && fault.message.starts_with("contains U+"), "{bad:?}: {}", fault.message);
            assert_eq!(check("name", &cleaned(bad), 0, 50), None, "{bad:?}");
        }
        assert!(check("name", "", 1, 50).is_some() && check("name", "", 0, 50).is_none());
        assert!(check("name", "ééé", 1, 2).is_some_and(|fault| fault.message == "has 3 characters; must have 1 to 2"));
    }

    #[test]
    fn terminals_are_shown_what_is_there() {
        let text = "Ada \u{1b}[2J\u{202e}\nnext";
        assert_eq!(escaped(text), "Ada \\u{1b}[2J\\u{202e}\nnext");
        let json = serde_json::json!({"name": "a\u{1b}\u{9b}\u{202e}\u{7f}b"});
        let shown = escaped_json(&json.to_string()).into_owned();
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
    }
}
