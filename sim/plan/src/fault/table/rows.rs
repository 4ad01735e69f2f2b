//! Makes the types and functions that follow from the table of faults.

/// Makes the kinds, the faults of each target, their fields, their form in files and their words from the rows.
macro_rules! faults {
    ($(
        $(#[$about:meta])*
        $Faults:ident on $target:ident($($word:ident),*) {$(
            $(#[$doc:meta])*
            $Variant:ident $({$(
                $(#[$field_doc:meta])*
                $field:ident: $type:ty $(= $default:expr)?
            ),* $(,)?})? = $Kind:ident $number:literal $name:literal, $row:expr,
            $sentence:literal $(, $detail:expr)*;
        )*}
    )*) => {
        /// A kind of fault, with its name in files and on the command line.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {$($(
            $(#[$doc])*
            $Kind = $number,
        )*)*}

        impl Kind {
            /// Every kind, in the order of the table.
            pub(super) const ROWS: &[Kind] = &[$($(Kind::$Kind,)*)*];

            /// Returns the name of the kind.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {$($(Kind::$Kind => $name,)*)*}
            }

            /// Returns what holds for every fault of the kind.
            pub(super) const fn row(self) -> Row {
                match self {$($(Kind::$Kind => $row,)*)*}
            }

            /// Returns a fault of the kind without targets, all of whose fields are zero, empty or the first choice.
            pub(crate) fn blank(self) -> FaultKind {
                match self {$($(
                    Kind::$Kind => FaultKind::$target($Faults::$Variant {
                        $($($field: FieldType::BLANK,)*)?
                    }),
                )*)*}
            }
        }

        impl FaultText {
            /// Takes the target and the fields of the fault.
            pub(super) fn take(&mut self) -> Result<FaultKind, String> {
                let text = self;
                match text.kind {$($(
                    Kind::$Kind => {
                        let fault = $Faults::$Variant {$($(
                            $field: <$type as InText<_>>::read(text.$field.take())?
                                $(.or(Some($default)))?
                                .ok_or_else(|| text.needs(stringify!($field)))?,
                        )*)?};
                        text.$target(fault)
                    }
                )*)*}
            }
        }

        $(
            $(#[$about])*
            pub enum $Faults {$(
                $(#[$doc])*
                $Variant $({$(
                    $(#[$field_doc])*
                    $field: $type,
                )*})?,
            )*}

            impl $Faults {
                /// Returns the kind of the fault.
                #[must_use]
                pub fn kind(&self) -> Kind {
                    match self {$($Faults::$Variant { .. } => Kind::$Kind,)*}
                }

                /// Returns the fields with their values.
                pub(super) fn fields(&self) -> Vec<(Field, Value<'_>)> {
                    match self {$(
                        $Faults::$Variant {$($($field),*)?} => vec![$($((Field::$field, FieldType::value($field))),*)?],
                    )*}
                }

                /// Returns the fields with mutable references to their values.
                pub fn fields_mut(&mut self) -> Vec<(Field, ValueMut<'_>)> {
                    match self {$(
                        $Faults::$Variant {$($($field),*)?} => vec![$($((Field::$field, FieldType::value_mut($field))),*)?],
                    )*}
                }

                /// Writes the fields to the textual form.
                #[allow(unused_variables, reason = "some faults have no fields")]
                pub(super) fn say(self, text: &mut FaultText) {
                    match self {$(
                        $Faults::$Variant {$($($field),*)?} => {
                            $($(text.$field = InText::write($field);)*)?
                        }
                    )*}
                }

                /// Writes the fault as a sentence.
                #[allow(unused_variables, reason = "not every sentence names all fields")]
                pub(super) fn words(
                    &self,
                    f: &mut fmt::Formatter<'_>,
                    $($word: &dyn fmt::Display,)*
                ) -> fmt::Result {
                    match self {$(
                        $Faults::$Variant {$($($field),*)?} => write!(f, $sentence $(, $detail)*),
                    )*}
                }
            }
        )*
    };
}

pub(super) use faults;
