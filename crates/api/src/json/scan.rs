//! Scans a JSON body before it is parsed.

use memchr::memchr2;

/// Properties of a JSON text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Scan {
    /// Nesting depth of arrays and objects.
    pub(super) depth: usize,
    /// Upper bound of the number of values: the body, and all members and items.
    pub(super) values: usize,
    /// Whether a string contains U+0000, which PostgreSQL cannot store. In JSON it can only be written `\u0000`.
    pub(super) nul: bool,
    /// Length of the longest string in bytes, as written.
    pub(super) longest: usize,
    /// Whether a member has a [reserved](RESERVED) name.
    pub(super) reserved: bool,
}

/// Prefix of names with which the parser passes numbers and raw JSON to itself. A caller who used one could have text parsed as JSON that
/// no check has seen.
pub(super) const RESERVED: &str = "$serde_json::private::";

/// Maximum length of a reserved name in bytes, with every character escaped.
const ESCAPED: usize = 6 * 64;

/// Scans `json` in one pass. The result for invalid JSON is arbitrary: the parser rejects it afterwards.
pub(super) fn scan(json: &[u8]) -> Scan {
    let (mut found, mut depth, mut at) = (Scan { values: 1, ..Scan::default() }, 0_usize, 0);
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => {
                depth += 1;
                found.values += 1;
                found.depth = found.depth.max(depth);
            }
            b',' => found.values += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = skip_string(json, at, &mut found);
                found.longest = found.longest.max(end - at);
                found.reserved |= is_reserved(json, at - 1, end);
                at = end;
            }
            _ => {}
        }
    }
    found
}

/// Returns whether the quoted string at `start..end` is a reserved name.
fn is_reserved(json: &[u8], start: usize, end: usize) -> bool {
    let text = &json[start..end];
    // A cheap filter: all reserved names begin like this, and few others.
    let may_be = text.len() <= ESCAPED && (text.starts_with(b"\"$") || text.starts_with(b"\"\\u0024"));
    may_be
        && json[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
        && serde_json::from_slice::<String>(text).is_ok_and(|name| name.starts_with(RESERVED))
}

/// Skips the string that begins at `at`; returns its end.
fn skip_string(json: &[u8], mut at: usize, found: &mut Scan) -> usize {
    while let Some(special) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += special;
        if json[at] == b'"' {
            return at + 1;
        }
        found.nul |= json[at..].starts_with(b"\\u0000");
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_values_and_nul_are_found_outside_of_traps() {
        for (json, depth, values, nul) in [
            (r#"{"a":[{"b":1}],"c":{}}"#, 3, 6, false),
            (r#""[[,[[""#, 0, 1, false),
            (r#"[1,2,3]"#, 1, 4, false),
            (r#"["\"[[["]"#, 1, 2, false),
            (r#"{"a":"x\u0000y"}"#, 1, 2, true),
            (r#"{"a\u0000":1}"#, 1, 2, true),
            (r#"{"a":"\\u0000"}"#, 1, 2, false),
            (r#"{"a":"\\\u0000"}"#, 1, 2, true),
            (r#"]]["#, 1, 2, false),
            (r#""unfinished \"#, 0, 1, false),
            ("", 0, 1, false),
        ] {
            let found = scan(json.as_bytes());
            assert_eq!((found.depth, found.values, found.nul), (depth, values, nul), "{json}");
        }
    }

    #[test]
    fn names_of_the_parser_are_found_however_they_are_written() {
        for (json, reserved) in [
            (r#"{"$serde_json::private::Number":"1"}"#, true),
            (r#"{"a":[{"$serde_json::private::RawValue" 	: 1}]}"#, true),
            (r#"{"\u0024serde\u005fjson::private::RawValue":1}"#, true),
            (r#"{"$serde_json::private::Later":1}"#, true),
            (r#"{"a":"$serde_json::private::Number"}"#, false),
            (r#"{"$serde_json":1,"$":"\"$serde_json::private::Number\":"}"#, false),
            (r#"{"$serde_json::private::Number"#, false),
        ] {
            assert_eq!(scan(json.as_bytes()).reserved, reserved, "{json}");
        }
    }

    #[test]
    fn the_longest_string_counts() {
        for (json, longest) in [("[1]", 0), (r#"{"ab":"cdef","g":"h"}"#, 5), (r#"["\"a"]"#, 4), (r#""abc"#, 3)] {
            assert_eq!(scan(json.as_bytes()).longest, longest, "{json}");
        }
    }
}
