//! Parses JSON with every text truncated, which suffices to validate a body of any length.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::faults::LONG;

/// Maximum length of a member name in bytes; above every name in a schema.
const NAME: usize = 1_024;

/// The single member of the object with which the parser passes a number with all its digits. No body contains it.
const NUMBER: &str = "$serde_json::private::Number";

/// A value whose texts have at most [`LONG`] bytes and whose names have at most [`NAME`]. Truncation keeps a U+0000.
#[derive(Debug)]
pub(super) struct Short(pub(super) Value);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shortening).map(Self)
    }
}

struct Shortening;

impl<'de> Visitor<'de> for Shortening {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(cut(text, LONG).into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Short(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            if name == NUMBER {
                let text = members.next_value::<String>()?;
                return text.parse().map(Value::Number).map_err(Error::custom);
            }
            let Short(item) = members.next_value()?;
            all.insert(cut(&name, NAME), item);
        }
        Ok(all.into())
    }
}

fn cut(text: &str, most: usize) -> String {
    let (short, rest) = text.split_at(text.floor_char_boundary(most));
    let mut short = short.to_owned();
    if memchr::memchr(0, rest.as_bytes()).is_some() {
        short.push('\0');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_and_names_are_cut_and_all_else_stays() {
        let short = |json: &str| serde_json::from_str::<Short>(json).expect("JSON").0;
        let plain = json!({"a": [1, -2, 2.5, true, null, "é\n\u{1}"], "b": {}});
        assert_eq!(short(&plain.to_string()), plain);
        let digits = r#"[1.50,1e400,12345678901234567890123]"#;
        assert_eq!(short(digits).to_string(), serde_json::from_str::<Value>(digits).expect("JSON").to_string());
        let long = "é".repeat(LONG);
        assert_eq!(short(&json!({&long: long}).to_string()), json!({"é".repeat(NAME / 2): "é".repeat(LONG / 2)}));
        let nul = format!("{long}\0");
        assert!(short(&json!([nul]).to_string())[0].as_str().is_some_and(|text| text.ends_with('\0')));
        assert!(serde_json::from_str::<Short>("[1").is_err());
    }
}
