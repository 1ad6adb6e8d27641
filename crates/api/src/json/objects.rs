//! Makes up for what serde's derived types take differently than their schemas: they also accept an array of their fields, and not `60.0`
//! for 60. On request, also skips fields that a type does not have.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};

/// Deserialises from a self-describing format; types with named fields accept only objects, at any depth. With the flag set, members
/// that these types do not have are skipped.
#[derive(Debug)]
pub(super) struct Objects<T>(pub(super) T, pub(super) bool);

/// Forwards to the inner deserializer, wrapping the visitor.
macro_rules! alike {
    ($($ask:ident($($name:ident: $type:ty),*);)*) => {
        $(fn $ask<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$ask($($name,)* Objects(visitor, self.1))
        })*
    };
}

/// Forwards to the inner deserializer, accepting a whole number in any notation.
macro_rules! whole {
    ($($ask:ident)*) => {
        $(fn $ask<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$ask(Whole(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let fields = self.1.then_some(fields);
        self.deserialize_map(Known(visitor, fields))
    }

    whole! {
        deserialize_i8
        deserialize_i16
        deserialize_i32
        deserialize_i64
        deserialize_u8
        deserialize_u16
        deserialize_u32
        deserialize_u64
    }

    alike! {
        deserialize_any();
        deserialize_bool();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

/// Forwards a scalar unchanged.
macro_rules! scalars {
    ($($visit:ident: $type:ty,)*) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$visit(value)
        })*
    };
}

/// Reads `60.0` and `6e1` as 60: in JSON Schema they are integers.
struct Whole<V>(V);

/// Up to here, every whole number is a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl<'de, V: Visitor<'de>> Visitor<'de> for Whole<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    scalars! {
        visit_i64: i64,
        visit_u64: u64,
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        if value.fract() == 0.0 && value.abs() <= EXACT { self.0.visit_i64(value as i64) } else { self.0.visit_f64(value) }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    scalars! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(deserializer, self.1))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(deserializer, self.1))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(items, self.1))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(members, self.1))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, value: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(value)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed, self.1))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Objects(seed, self.1))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(deserializer, self.1))
    }
}

/// Skips the members of an object that are not among these fields; without fields, none.
struct Known<T>(T, Option<&'static [&'static str]>);

impl<'de, V: Visitor<'de>> Visitor<'de> for Known<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Known(members, self.1))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Known<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(fields) = self.1 else { return self.0.next_key_seed(seed) };
        while let Some(name) = self.0.next_key::<String>()? {
            if fields.contains(&name.as_str()) {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            self.0.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}
