//! The common type of parameters and results for all three databases.

use crate::DbError;

/// A parameter of a statement, or a field of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL's NULL. It also stands for a field of a type that the applications do not use.
    Null,
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

/// One row of a result.
#[derive(Clone, Debug)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    /// Returns the number in a column. Fails if the column has no number.
    pub fn number(&self, column: usize) -> Result<i64, DbError> {
        match self.0.get(column) {
            Some(Value::Number(number)) => Ok(*number),
            other => Err(DbError::Failed(format!("column {column} is not a number: {other:?}"))),
        }
    }

    /// Returns the text in a column. Fails if the column has no text.
    pub fn text(&self, column: usize) -> Result<String, DbError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text.clone()),
            other => Err(DbError::Failed(format!("column {column} is not a text: {other:?}"))),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Self::from)
    }
}
