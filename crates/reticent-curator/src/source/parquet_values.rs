//! What a column of a Parquet table can hold by its type, and its values as this crate reads them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, Float64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use reticent_core::record::{ColumnValues, RawValue};

use super::Role;

/// A column of a batch, in one of few types.
pub(super) enum BatchColumn {
    Missing,
    Number(Float64Array),
    Boolean(BooleanArray),
    Text(BinaryViewArray),
}

impl BatchColumn {
    /// The value of a row.
    #[inline]
    pub(super) fn value(&self, row: usize) -> RawValue<'_> {
        match self {
            Self::Missing => RawValue::Missing,
            Self::Number(column) if column.is_valid(row) => RawValue::Number(column.value(row)),
            Self::Boolean(column) if column.is_valid(row) => RawValue::Boolean(column.value(row)),
            Self::Text(column) if column.is_valid(row) => RawValue::Text(column.value(row)),
            Self::Number(_) | Self::Boolean(_) | Self::Text(_) => RawValue::Missing,
        }
    }
}

/// What a Parquet type holds, as far as this crate is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueClass {
    Nothing,
    Whole,
    Fraction,
    Boolean,
    Text,
    /// Days since 1970.
    Date,
    /// A time or a timestamp, by the ticks in a second.
    Time(TimeUnit),
    Other,
}

impl ValueClass {
    pub(crate) fn of(data_type: &DataType) -> Self {
        #[allow(clippy::wildcard_enum_match_arm, reason = "whatever else Arrow has or will have is not read")]
        match data_type {
            DataType::Null => Self::Nothing,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Whole,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Self::Whole,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Fraction,
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                Self::Fraction
            }
            DataType::Boolean => Self::Boolean,
            DataType::Utf8 | DataType::Binary | DataType::FixedSizeBinary(_) => Self::Text,
            DataType::Date32 => Self::Date,
            DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => Self::Time(*unit),
            _ => Self::Other,
        }
    }
}

/// The values that a type can hold, where that says what can be found among them.
pub(super) fn column_values(data_type: &DataType) -> Option<ColumnValues> {
    let whole = |low: f64, high: f64| Some(ColumnValues::WholeNumbers { low, high });
    #[allow(clippy::wildcard_enum_match_arm, reason = "what holds any text, and what is not read as a word")]
    match data_type {
        DataType::Null => Some(ColumnValues::Nothing),
        DataType::Boolean => Some(ColumnValues::Booleans),
        DataType::Int8 => whole(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => whole(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => whole(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => whole(i64::MIN as f64, i64::MAX as f64),
        DataType::UInt8 => whole(0.0, u8::MAX.into()),
        DataType::UInt16 => whole(0.0, u16::MAX.into()),
        DataType::UInt32 => whole(0.0, u32::MAX.into()),
        DataType::UInt64 => whole(0.0, u64::MAX as f64),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Some(ColumnValues::Numbers),
        DataType::Decimal32(_, digits)
        | DataType::Decimal64(_, digits)
        | DataType::Decimal128(_, digits)
        | DataType::Decimal256(_, digits) => Some(ColumnValues::Decimals { digits: *digits }),
        DataType::FixedSizeBinary(length) => {
            Some(ColumnValues::Texts { length: usize::try_from(*length).unwrap_or(0) })
        }
        _ => None,
    }
}

/// From an Arrow array to raw values.
#[derive(Clone, Copy)]
pub(super) enum Conversion {
    Missing,
    Number,
    /// Floats of 16 or 32 bits by their own shortest decimals: a text table and the schema have `0.1`, not the 64-bit float nearest to it in 32.
    ShortFloat,
    /// Whole numbers of 64 bits, which 64-bit floats do not tell apart from 2^53 on: in a batch with such, as text.
    LongWhole,
    /// Decimals, each the nearest float.
    Decimal,
    Boolean,
    Text,
    Date,
    Time(TimeUnit),
    /// To text first: a whole number above 2^53 has no float of its own, and a key must not be somebody else's.
    Key,
}

impl Conversion {
    pub(super) fn of(data_type: &DataType, role: Role) -> Option<Self> {
        match (ValueClass::of(data_type), role) {
            (ValueClass::Nothing, _) => Some(Self::Missing),
            (ValueClass::Fraction, Role::Number | Role::Word) if is_decimal(data_type) => Some(Self::Decimal),
            (ValueClass::Fraction, Role::Word) if *data_type != DataType::Float64 => Some(Self::ShortFloat),
            (ValueClass::Whole, Role::Word) if matches!(data_type, DataType::Int64 | DataType::UInt64) => {
                Some(Self::LongWhole)
            }
            (ValueClass::Whole | ValueClass::Fraction, Role::Number | Role::Word) => Some(Self::Number),
            (ValueClass::Boolean, Role::Number | Role::Word) => Some(Self::Boolean),
            (ValueClass::Text, Role::Word) => Some(Self::Text),
            (ValueClass::Date, Role::Number) => Some(Self::Date),
            (ValueClass::Time(unit), Role::Number) => Some(Self::Time(unit)),
            // Keys are compared after trimming, which would make two different people of two binary keys.
            (ValueClass::Text, Role::Key) if *data_type == DataType::Utf8 => Some(Self::Text),
            (ValueClass::Whole | ValueClass::Boolean, Role::Key) => Some(Self::Key),
            // Warehouses keep whole numbers in decimals.
            (ValueClass::Fraction, Role::Key) if column_values(data_type) == Some(ColumnValues::Decimals { digits: 0 }) => {
                Some(Self::Key)
            }
            (ValueClass::Text, Role::Number | Role::Key)
            | (ValueClass::Date | ValueClass::Time(_), Role::Word)
            // Arrow fails on a date that its calendar does not hold: an error that would depend on a value.
            | (ValueClass::Fraction | ValueClass::Date | ValueClass::Time(_), Role::Key)
            | (ValueClass::Other, _) => None,
        }
    }

    pub(super) fn convert(self, batch: &RecordBatch, place: usize) -> Result<BatchColumn, ArrowError> {
        let array = batch.column(place);
        let numbers = |array: &ArrayRef| -> Result<Float64Array, ArrowError> {
            Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
        };
        Ok(match self {
            Self::Missing => BatchColumn::Missing,
            Self::Number => BatchColumn::Number(numbers(array)?),
            Self::ShortFloat => BatchColumn::Number(shortest_decimals(array)),
            Self::LongWhole => {
                let numbers = numbers(array)?;
                let is_long = |number: Option<f64>| number.is_some_and(|number| number.abs() >= EXACT_BELOW);
                if numbers.iter().any(is_long) { as_text(array)? } else { BatchColumn::Number(numbers) }
            }
            Self::Decimal => BatchColumn::Number(decimals(array)?),
            Self::Boolean => BatchColumn::Boolean(array.as_boolean().clone()),
            Self::Text => BatchColumn::Text(cast(array, &DataType::BinaryView)?.as_binary_view().clone()),
            Self::Date => BatchColumn::Number(numbers(&cast(array, &DataType::Int32)?)?),
            Self::Time(unit) => {
                let ticks = numbers(&ticks(array)?)?;
                let ticks_per_second = match unit {
                    TimeUnit::Second => 1.0,
                    TimeUnit::Millisecond => 1e3,
                    TimeUnit::Microsecond => 1e6,
                    TimeUnit::Nanosecond => 1e9,
                };
                BatchColumn::Number(ticks.unary(|tick| tick / ticks_per_second))
            }
            Self::Key => as_text(array)?,
        })
    }
}

/// 2^53: below it, 64-bit floats tell whole numbers apart.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

type Half = <Float16Type as ArrowPrimitiveType>::Native;

fn is_decimal(data_type: &DataType) -> bool {
    matches!(column_values(data_type), Some(ColumnValues::Decimals { .. }))
}

fn as_text(array: &ArrayRef) -> Result<BatchColumn, ArrowError> {
    let text = cast(array, &DataType::Utf8View)?;
    Ok(BatchColumn::Text(text.as_string_view().clone().to_binary_view()))
}

/// The 64-bit floats that the shortest decimals of floats of 16 or 32 bits read as.
fn shortest_decimals(array: &ArrayRef) -> Float64Array {
    let Some(halves) = array.as_primitive_opt::<Float16Type>() else {
        return array.as_primitive::<Float32Type>().unary(|number| number.to_string().parse().unwrap_or(f64::NAN));
    };
    halves.unary(|number| {
        let rounded = |digits: usize| format!("{:.digits$e}", number.to_f64()).parse().unwrap_or(f64::NAN);
        let shortest = (0..5).map(rounded).find(|decimal| Half::from_f64(*decimal) == number);
        shortest.unwrap_or(number.to_f64())
    })
}

/// The nearest float of each decimal. Arrow rounds the digits and then the quotient, and so finds `0.1` beside the float of that name.
fn decimals(array: &ArrayRef) -> Result<Float64Array, ArrowError> {
    let parse = |text: &str| text.parse().unwrap_or(f64::NAN);
    let DataType::Decimal128(_, digits) = *array.data_type() else {
        let text = cast(array, &DataType::Utf8View)?;
        return Ok(text.as_string_view().iter().map(|text| text.map(parse)).collect());
    };
    // Both are floats without rounding there, and a quotient is rounded once.
    let exact = |decimal: i128| decimal.unsigned_abs() < 1 << 53 && (0..=22).contains(&digits);
    let power = 10f64.powi(digits.into());
    Ok(array.as_primitive::<Decimal128Type>().unary(|decimal| {
        if exact(decimal) { decimal as f64 / power } else { parse(&format!("{decimal}e{}", -i32::from(digits))) }
    }))
}

/// The integers of a time or timestamp.
fn ticks(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let DataType::Time32(_) = array.data_type() {
        cast(array, &DataType::Int32)
    } else {
        cast(array, &DataType::Int64)
    }
}
