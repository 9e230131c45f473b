//! A model: a kind of device and its parameters.

use crate::{
    Error, Parameter,
    constant::Constant,
    fields::{Fields, value_of},
    flash::Flash,
    hard_disk::HardDisk,
};
use toml::{Table, Value};

/// A model of a device's timing.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Constant(Constant),
    HardDisk(HardDisk),
    Flash(Flash),
}

/// Names of the kinds in model files.
const KINDS: [&str; 3] = ["constant", "hard-disk", "flash"];

impl Default for Model {
    /// Returns `ram`, on which each request completes at once.
    fn default() -> Model {
        Model {
            kind: Kind::Constant(Constant::default()),
        }
    }
}

impl Model {
    /// Parses the `[latency]` section of a device file. Errors refer to the file as `file`.
    pub fn parse(file: &str, text: &str) -> Result<Model, Error> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| Error::of_file(file, error.to_string()))?;
        let section = match table.get("latency") {
            Some(Value::Table(section)) => section,
            None => {
                let remedy = "`fscost devices hdd-7200 --toml` prints an example";
                return Err(Error::of_file(
                    file,
                    format!("has no [latency] section; {remedy}"),
                ));
            }
            Some(other) => {
                let found = other.type_str();
                let what = format!("latency has the type {found}; write a section [latency]");
                return Err(Error::of_file(file, what));
            }
        };
        let mut fields = Fields::new(file, Some(section));
        let kind = match section.get("model").map(value_of) {
            Some(Some(Value::String(kind))) => read(&mut fields, kind)?,
            None => return Err(unknown_kind(&fields, "is missing")),
            Some(_) => return Err(unknown_kind(&fields, "is not text")),
        };
        fields.end(&["model"])?;
        Ok(Model { kind })
    }

    /// Returns the names of the kinds of models.
    #[must_use]
    pub fn kinds() -> &'static [&'static str] {
        &KINDS
    }

    /// Returns the parameters of a kind of model, in the order of the documentation. Empty if the
    /// kind does not exist.
    #[must_use]
    pub fn parameters(kind: &str) -> Vec<Parameter> {
        let mut fields = Fields::new("", None);
        // The smallest values need not be consistent with each other.
        let _ = read(&mut fields, kind);
        fields.known
    }

    /// True if each request completes on submission, as on `ram`. A server then needs no clock.
    #[must_use]
    pub fn is_instant(&self) -> bool {
        *self == Model::default()
    }
}

fn read(fields: &mut Fields<'_>, kind: &str) -> Result<Kind, Error> {
    match kind {
        "constant" => Ok(Kind::Constant(Constant::read(fields)?)),
        "hard-disk" => Ok(Kind::HardDisk(HardDisk::read(fields)?)),
        "flash" => Ok(Kind::Flash(Flash::read(fields)?)),
        other => Err(unknown_kind(fields, &format!("is {other:?}"))),
    }
}

fn unknown_kind(fields: &Fields<'_>, what: &str) -> Error {
    let kinds = KINDS.join(", ");
    fields.wrong("model", &format!("{what}; give one of: {kinds}"))
}
