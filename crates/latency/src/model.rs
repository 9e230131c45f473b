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
        let Some(section) = table.get("latency") else {
            return Err(Error::of_file(
                file,
                "has no [latency] section; `fscost devices hdd-7200 --toml` prints an example",
            ));
        };
        let Value::Table(section) = section else {
            let what = format!(
                "latency has the type {}; write a section [latency]",
                section.type_str()
            );
            return Err(Error::of_file(file, what));
        };
        let kinds = KINDS.join(", ");
        let kind = match section.get("model").map(value_of) {
            Some(Some(Value::String(kind))) => kind.as_str(),
            None => {
                let what = format!("is missing; give one of: {kinds}");
                return Err(Error::of_field(file, "model", &what));
            }
            Some(_) => {
                let what = format!("is not text; give one of: {kinds}");
                return Err(Error::of_field(file, "model", &what));
            }
        };
        let mut fields = Fields::new(file, section);
        let kind = read(&mut fields, kind)?;
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
        let mut fields = Fields::described();
        // The smallest values need not be consistent with each other.
        let _ = read(&mut fields, kind);
        fields.into_parameters()
    }

    /// True if each request completes on submission, as on `ram`. A server then needs no clock.
    #[must_use]
    pub fn is_instant(&self) -> bool {
        match &self.kind {
            Kind::Constant(constant) => constant.is_instant(),
            Kind::HardDisk(_) | Kind::Flash(_) => false,
        }
    }
}

fn read(fields: &mut Fields<'_>, kind: &str) -> Result<Kind, Error> {
    match kind {
        "constant" => Ok(Kind::Constant(Constant::read(fields)?)),
        "hard-disk" => Ok(Kind::HardDisk(HardDisk::read(fields)?)),
        "flash" => Ok(Kind::Flash(Flash::read(fields)?)),
        other => {
            let kinds = KINDS.join(", ");
            Err(fields.wrong("model", &format!("is {other:?}; give one of: {kinds}")))
        }
    }
}
