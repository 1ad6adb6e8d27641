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
    /// Gambling.
    Gambling,
    /// A premium-rate number.
    Premium,
    /// Resembles spam.
    Spam,
    /// An offer without the name of its sender.
    Anonymous,
    /// A word on the project's own list.
    Blocked,
    /// An offer without a way to opt out.
    NoWayOut,
}

/// A finding: its category and the words in question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding(pub(super) Category, pub(super) String);

/// Returns the words for a category within a sentence.
pub(super) const fn words_for(category: Category) -> &'static str {
    match category {
        Category::Phishing => "links that pretend to lead elsewhere",
        Category::Credentials => "requests for passwords, codes or payment data",
        Category::Forbidden => "goods or services that may not be offered",
        Category::Hate => "hateful or threatening words",
        Category::ShortLink => "links that hide where they lead",
        Category::CheapLink => "links below domains that fraud prefers",
        Category::Lure | Category::Part => "a story that fraud tells",
        Category::Adult => "sexual offers",
        Category::Gambling => "games of chance",
        Category::Premium => "numbers or messages at a premium rate",
        Category::Spam => "signs of spam",
        Category::Anonymous => "an offer that does not say who makes it",
        Category::Blocked => "words that the operator has blocked",
        Category::NoWayOut => "an offer that does not say how to opt out",
    }
}
