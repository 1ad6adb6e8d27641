//! Findings of a review.

/// Kind of violation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Category {
    /// A link that imitates another domain.
    Phishing,
    /// Requests passwords, codes or payment data.
    Credentials,
    /// Offers goods that no provider carries.
    Forbidden,
    /// Hate or a threat.
    Hate,
    /// A link with a hidden target.
    ShortLink,
    /// A link under a top-level domain common in fraud.
    CheapLink,
    /// A pattern common in fraud.
    Lure,
    /// A further part of such a pattern: shown, not counted.
    Part,
    /// Sexual offers.
    Adult,
    Gambling,
    /// A premium-rate number.
    Premium,
    /// Resembles spam.
    Spam,
    /// An offer without the name of its sender.
    Anonymous,
    /// Letters that hide from filters what the text says.
    Disguise,
    /// A word on the project's own list.
    Blocked,
    /// An offer without a way to opt out.
    NoWayOut,
}

/// A finding: its category and the words in question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding(pub(super) Category, pub(super) String);
