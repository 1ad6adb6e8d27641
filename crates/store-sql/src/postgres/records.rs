//! Rows as one parameter: an array of a composite type.
//!
//! `unnest` of such an array makes one list of rows, where an array per column makes a list for each column: 31 rows of 18 columns take a
//! fifth of the time.

use std::error::Error;
use std::fmt;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{Field, IsNull, Kind, ToSql, Type, to_sql_checked};

type Outcome<T> = Result<T, Box<dyn Error + Sync + Send>>;

/// An array of a composite type: `write` writes the fields of a row.
pub(super) struct Records<'a, T, F> {
    rows: &'a [T],
    write: F,
}

impl<'a, T, F: Fn(&T, Fields<'_>) -> Outcome<()>> Records<'a, T, F> {
    pub(super) const fn new(rows: &'a [T], write: F) -> Self {
        Self { rows, write }
    }
}

impl<T, F> fmt::Debug for Records<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records", self.rows.len())
    }
}

/// The fields of a type.
fn fields(array: &Type) -> Option<(&Type, &[Field])> {
    let Kind::Array(member) = array.kind() else { return None };
    let Kind::Composite(fields) = member.kind() else { return None };
    Some((member, fields))
}

impl<T, F: Fn(&T, Fields<'_>) -> Outcome<()>> ToSql for Records<'_, T, F> {
    /// The binary formats of arrays and of composite values (`array_recv`, `record_recv`).
    fn to_sql(&self, array: &Type, out: &mut BytesMut) -> Outcome<IsNull> {
        let (member, types) = fields(array).ok_or("not an array of a composite type")?;
        let dimensions = i32::from(!self.rows.is_empty());
        out.put_i32(dimensions);
        out.put_i32(0); // no element is null
        out.put_u32(member.oid());
        if dimensions == 1 {
            out.put_i32(i32::try_from(self.rows.len())?);
            out.put_i32(1); // the first index
        }
        for row in self.rows {
            sized(out, |out| {
                out.put_i32(i32::try_from(types.len())?);
                (self.write)(row, Fields { types, out })?;
                Ok(IsNull::No)
            })?;
        }
        Ok(IsNull::No)
    }

    fn accepts(array: &Type) -> bool {
        fields(array).is_some()
    }

    to_sql_checked!();
}

/// Where the fields of a row are written.
pub(super) struct Fields<'a> {
    types: &'a [Field],
    out: &'a mut BytesMut,
}

impl Fields<'_> {
    /// Writes all fields, in the order of the type.
    pub(super) fn write(self, values: &[&dyn ToSql]) -> Outcome<()> {
        if values.len() != self.types.len() {
            return Err(format!("{} values for {} fields", values.len(), self.types.len()).into());
        }
        for (field, value) in self.types.iter().zip(values) {
            self.out.put_u32(field.type_().oid());
            sized(self.out, |out| value.to_sql_checked(field.type_(), out))?;
        }
        Ok(())
    }
}

/// Writes a value after its length, which is -1 for null.
fn sized(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> Outcome<IsNull>) -> Outcome<()> {
    let at = out.len();
    out.put_i32(-1);
    if let IsNull::No = write(out)? {
        let length = i32::try_from(out.len() - at - size_of::<i32>())?;
        out[at..at + size_of::<i32>()].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}
