//! Enums whose variants appear in tables, each with a name and a meaning.

/// Defines an enum from a list of variants with their names in tables and their meanings.
macro_rules! catalogue {
    (
        $(#[$of_enum:meta])* $enum:ident
        $($(#[$attribute:meta])* $variant:ident $name:literal $meaning:literal),* $(,)?
    ) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum {
            $(#[doc = $meaning] $(#[$attribute])* $variant),*
        }

        impl $enum {
            /// All variants, in the order of the tables.
            pub const ALL: &[$enum] = &[$($enum::$variant),*];

            /// Returns the name in tables.
            pub fn name(self) -> &'static str {
                match self { $($enum::$variant => $name),* }
            }

            /// Returns a one-line description for people.
            pub fn meaning(self) -> &'static str {
                match self { $($enum::$variant => $meaning),* }
            }
        }
    };
}

pub(crate) use catalogue;
