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
        Category::Phishing => "links with a misleading target",
        Category::Credentials => "requests for passwords, codes or payment data",
        Category::Forbidden => "prohibited goods or services",
        Category::Hate => "hateful or threatening language",
        Category::ShortLink => "links that hide their target",
        Category::CheapLink => "links to domains that are common in fraud",
        Category::Lure | Category::Part => "a story that is typical of fraud",
        Category::Adult => "sexual offers",
        Category::Gambling => "gambling",
        Category::Premium => "premium-rate numbers or messages",
        Category::Spam => "signs of spam",
        Category::Anonymous => "an offer without the name of its author",
        Category::Blocked => "words that the operator has blocked",
        Category::NoWayOut => "an offer without a way to opt out",
    }
}
