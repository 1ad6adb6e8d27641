//! Groups use cases by resource.

/// Declares the use cases of a resource: a view of the [`Core`] with its own methods, reached by a method of the core.
macro_rules! use_cases {
    ($(#[$doc:meta])* $accessor:ident => $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a>(&'a $crate::base::Core);

        impl std::ops::Deref for $name<'_> {
            type Target = $crate::base::Core;

            fn deref(&self) -> &Self::Target {
                self.0
            }
        }

        impl $crate::base::Core {
            $(#[$doc])*
            pub const fn $accessor(&self) -> $name<'_> {
                $name(self)
            }
        }
    };
}
pub(crate) use use_cases;
