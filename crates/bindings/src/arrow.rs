//! Columns as Arrow record batches, passed to Python through Arrow's C data interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ffi::FFI_ArrowArray};
use arrow_schema::{ArrowError, DataType, Field, ffi::FFI_ArrowSchema};
use pyo3::{exceptions::PyOverflowError, prelude::*, types::PyCapsule};

/// A record batch. `pyarrow.record_batch` imports it without a copy.
#[pyclass(frozen, module = "fscost._native")]
pub struct Batch {
    columns: ArrayData,
}

impl Batch {
    /// Builds a batch from columns of equal length. Each column may hold nulls.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayData)>) -> PyResult<Self> {
        let columns: Vec<_> = columns.into_iter().collect();
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        let fields = columns
            .iter()
            .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
        let batch = ArrayData::builder(DataType::Struct(fields.collect()))
            .len(rows)
            .child_data(columns.into_iter().map(|(_, column)| column).collect());
        let columns = batch.build().map_err(refused)?;
        Ok(Self { columns })
    }
}

#[pymethods]
impl Batch {
    /// Return the columns as capsules of an `ArrowSchema` and an `ArrowArray`. Another schema may
    /// be requested; the protocol allows this request to be ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let schema = FFI_ArrowSchema::try_from(self.columns.data_type()).map_err(refused)?;
        let array = FFI_ArrowArray::new(&self.columns);
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// Converts an error of Arrow: names that fill more than 2 GiB, or a defect of this crate.
pub fn refused(error: ArrowError) -> PyErr {
    PyOverflowError::new_err(error.to_string())
}

/// Returns a column without nulls.
pub fn column<T: ArrowNativeType>(kind: DataType, values: Vec<T>) -> PyResult<ArrayData> {
    let column = ArrayData::builder(kind).len(values.len());
    let column = column.add_buffer(Buffer::from_vec(values));
    column.build().map_err(refused)
}

/// Returns a column whose negative values are null.
pub fn nullable<T>(kind: DataType, values: Vec<T>) -> PyResult<ArrayData>
where
    T: ArrowNativeType + PartialOrd + Default,
{
    let known = NullBuffer::from_iter(values.iter().map(|value| *value >= T::default()));
    let column = column(kind, values)?.into_builder().nulls(Some(known));
    column.build().map_err(refused)
}

/// Returns a column of booleans.
pub fn flags(values: &[bool]) -> PyResult<ArrayData> {
    let column = ArrayData::builder(DataType::Boolean).len(values.len());
    let column = column.add_buffer(BooleanBuffer::from(values).into_inner());
    column.build().map_err(refused)
}

/// Returns a column of texts.
pub fn texts(texts: impl IntoIterator<Item: AsRef<str>>) -> PyResult<ArrayData> {
    let (mut ends, mut bytes) = (vec![0_i32], Vec::new());
    for text in texts {
        bytes.extend_from_slice(text.as_ref().as_bytes());
        ends.push(i32::try_from(bytes.len()).map_err(|_| {
            PyOverflowError::new_err("the names in this recording take more than 2 GiB")
        })?);
    }
    let column = ArrayData::builder(DataType::Utf8).len(ends.len() - 1);
    let column = column.add_buffer(Buffer::from_vec(ends));
    let column = column.add_buffer(Buffer::from_vec(bytes));
    column.build().map_err(refused)
}

/// Returns a column of names by their numbers; a negative number is null.
pub fn named<T>(key: DataType, numbers: Vec<T>, names: &ArrayData) -> PyResult<ArrayData>
where
    T: ArrowNativeType + PartialOrd + Default,
{
    let kind = DataType::Dictionary(Box::new(key.clone()), Box::new(DataType::Utf8));
    let numbers = nullable(key, numbers)?.into_builder().data_type(kind);
    let column = numbers.add_child_data(names.clone());
    column.build().map_err(refused)
}
