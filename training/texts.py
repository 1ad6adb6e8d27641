"""The texts of business.tsv and abuse.tsv with their slots filled in. The same seed gives the same texts."""

import random
import re
from pathlib import Path

HERE = Path(__file__).parent

COMPANIES = """Acme|Lumen Clinic|Nordbank|Casa Verde|Pizza Roma|FitPoint|CityParcel|Vela Energy|Oak School|Blue Taxi|Bookworm|Solmar
Hotel Mirador|Optica Sol|Banco Azul|Telnova|Garage Weber|Petcare|Green Grocer|Studio Nine|Mercado Rojo|Airpol|Salon Eva|Northwater|Kino Palast
Fresco|Zapatos Luna|Rapid Parcel|First Harbour Bank|Dr. Lee|Clinica Norte|MyShop|QuickFix|Alpina Insurance|CloudDesk|StreamBox|Parkio
Amazon|DHL|Correos|BBVA|Netflix|IKEA|Zara|Vodafone|Movistar|Uber|HSBC|PayPal|Santander|Royal Mail|SEUR|Spotify|Zalando""".replace("\n", "|").split("|")
SHOPS = ["Green Grocer", "Fresco", "Kino Palast", "Petcare", "Bookworm", "Amazon", "IKEA", "a petrol station", "Zara"]
NAMES = ["Ana", "Tom", "Lucia", "Mark", "Sofia", "John", "Elena", "Peter", "Carlos", "Maria", "James", "Ines", "David", "Laura"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "12 May", "3 June", "21/10", "14 March", "tomorrow"]
DIAS = ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo", "12 de mayo", "3 de junio", "21/10", "14 de marzo"]
PATHS = ["", "/t/{n}", "/{n}", "/sale", "/pay/{n}", "/track?id={n}", "/book", "/r/{n1}", "/orders/{n}", "/account", "/my/{n}", "/s/x{n1}k"]
HOSTS = ["{co}.example", "www.{co}.com", "{co}.com", "{co}.es", "pay.{co}.example", "track.{co}.com", "my.{co}.co.uk", "{co}.de", "{co}.org",
         "app.{co}.io", "{co}.example", "{co}.shop", "info.{co}.example"]
CARRIERS = ["DHL", "Royal Mail", "USPS", "FedEx", "UPS", "Correos", "Evri", "DPD", "SEUR", "CityPost", "Hermes", "An Post", "Parcelforce", "GLS"]
BANKS = ["HSBC", "Santander", "BBVA", "Chase", "Wells Fargo", "CaixaBank", "Barclays", "Nordbank", "Banco Azul", "PayPal", "Revolut", "Bank", "Lloyds",
         "NatWest", "Monzo", "Halifax", "Bank of America", "Citi", "Capital One", "TD Bank", "Nationwide", "ING", "Alder Bank", "Harbour Credit Union"]
# Names with the domains that belong to them.
BRANDS = {
    "Netflix": "netflix.com", "Spotify": "spotify.com", "Disney+": "disneyplus.com", "PayPal": "paypal.com", "Amazon": "amazon.co.uk",
    "eBay": "ebay.com", "Apple": "apple.com", "Google": "google.com", "DHL": "dhl.com", "FedEx": "fedex.com", "UPS": "ups.com",
    "USPS": "usps.com", "Royal Mail": "royalmail.com", "Evri": "evri.com", "DPD": "dpd.co.uk", "Correos": "correos.es", "SEUR": "seur.com",
    "HSBC": "hsbc.co.uk", "Barclays": "barclays.co.uk", "Santander": "santander.co.uk", "Chase": "chase.com", "Monzo": "monzo.com",
    "BBVA": "bbva.es", "Wells Fargo": "wellsfargo.com", "Capital One": "capitalone.com", "EE": "ee.co.uk", "O2": "o2.co.uk",
    "Vodafone": "vodafone.co.uk", "T-Mobile": "t-mobile.com", "Verizon": "verizon.com", "Uber": "uber.com", "Airbnb": "airbnb.com",
    "LinkedIn": "linkedin.com", "Facebook": "facebook.com", "Zoom": "zoom.us", "Dropbox": "dropbox.com",
}
BAD_WORDS = ["secure", "verify", "login", "claim", "refund", "update", "parcel", "delivery", "account", "support", "reward", "bonus", "pay", "help", "online",
             "my", "track", "fees", "id", "win", "confirm", "dhl", "post", "bank", "customer", "info", "alert", "cash", "free", "vip"]
BAD_TLDS = ["top", "xyz", "click", "info", "com", "com", "net", "online", "icu", "site", "live", "vip", "example", "example", "co", "org", "cc", "ru"]
FAKE_WORDS = ["rebook", "redelivery", "payee", "review", "device", "removal", "cancel", "invoice", "billing", "unlock", "restore", "kyc", "tax", "toll",
              "fine", "check", "form", "portal", "service", "center", "uk", "de", "es", "fr", "it", "pt", "nl", "cliente", "pagos", "zahlung", "livraison",
              "sicher", "sblocco", "verifica", "betalen", "doplata", "onay", "konto", "neu", "new", "app", "eu", "gov"]
SHORT = ["bit.ly", "tinyurl.com", "cutt.ly", "t.co", "rb.gy", "is.gd", "shorturl.at", "t.ly"]


def number(r, low, high):
    return "".join(r.choice("0123456789") for _ in range(r.randint(low, high)))


def money(r, value, lang):
    if lang == "en":
        return f"{r.choice('£$€')}{value}"
    return f"{str(value).replace('.', ',')} €" if r.random() < 0.5 else f"{value}€" if lang != "pt" else f"R$ {value}"


def bad_link(r):
    kind = r.random()
    words = r.sample(BAD_WORDS, r.choice([1, 2, 2, 3]))
    tail = r.choice(["", "", f"/{number(r, 2, 5)}", "/login", "/x" + number(r, 1, 3), "/verify", "/pay"])
    if kind < 0.22:
        return r.choice(["https://", "http://", ""]) + r.choice(SHORT) + "/" + "".join(r.choice("abcdxyzQRT379") for _ in range(6))
    if kind < 0.27:
        return f"http://{r.randint(11, 220)}.{r.randint(1, 250)}.{r.randint(1, 250)}.{r.randint(1, 250)}{tail}"
    if kind < 0.42:
        return ""
    scheme = r.choice(["https://", "https://", "http://", "", "www."])
    return f"{scheme}{r.choice(['-', '-', '.', '']).join(words)}.{r.choice(BAD_TLDS)}{tail or r.choice(['', '/a'])}"


def fake_link(r, name):
    """A link that pretends to lead to somebody, as fraud does."""
    slug = re.sub(r"[^a-z0-9]+", "", name.lower().split(" ")[0])
    if r.random() < 0.35 or not slug:
        return bad_link(r)
    words = r.sample([*BAD_WORDS, *FAKE_WORDS], r.choice([1, 1, 2]))
    parts = [slug, *words] if r.random() < 0.8 else [*words, slug]
    host = r.choice(["-", "-", "-", "."]).join(parts)
    return r.choice(["https://", "", "", "http://"]) + host + "." + r.choice(BAD_TLDS) + r.choice(["", "", "/login", f"/{number(r, 2, 4)}"])


def site(r, name, company):
    """A link of the very sender."""
    if name not in BRANDS or r.random() < 0.3:
        return good_link(r, company)
    return r.choice(["", "", "https://", "https://www."]) + BRANDS[name]


def good_link(r, company):
    slug = re.sub(r"[^a-z0-9]+", r.choice(["", "-", ""]), company.lower()).strip("-")
    path = r.choice(PATHS).format(n=number(r, 3, 7), n1=r.randint(2, 9))
    return f"{r.choice(['https://', 'https://', 'https://', ''])}{r.choice(HOSTS).format(co=slug)}{path}"


def fill(template, lang, r):
    """One text of a template."""
    company, carrier, bank, brand = r.choice(COMPANIES), r.choice(CARRIERS), r.choice(BANKS), r.choice(list(BRANDS))
    # One of several wordings: [this|that].
    template = re.sub(r"\[([^\[\]]*)\]", lambda m: r.choice(m[1].split("|")), template)
    named = {"{car}": carrier, "{bank}": bank, "{brandco}": brand}
    name = next((value for slot, value in named.items() if slot in template), template.split(":")[0] if ":" in template[:30] else "")
    slots = {
        "co": lambda: company,
        "url": lambda: good_link(r, company),
        "site": lambda: site(r, name, company),
        "brandco": lambda: brand,
        "brandsite": lambda: r.choice(["", "https://", "https://www."]) + BRANDS[brand] + r.choice(["", "/account", "/help"]),
        "fake": lambda: fake_link(r, name),
        "bad": lambda: bad_link(r),
        "code": lambda: r.choice([number(r, 4, 4), number(r, 6, 6), number(r, 6, 6), f"{number(r, 3, 3)}-{number(r, 3, 3)}"]),
        "n": lambda: r.choice(["", "", "A-", "INV-", "F"]) + number(r, 3, 8),
        "n1": lambda: str(r.randint(2, 9)),
        "amt": lambda: money(r, r.choice([r.randint(5, 400), f"{r.randint(5, 400)}.{r.randint(10, 99)}"]), lang),
        "small": lambda: money(r, f"{r.randint(0, 4)}.{r.randint(10, 99)}", lang),
        "big": lambda: money(r, r.choice(["1000", "5000", "10,000", "500", "2,500", "1,000,000", "50.000", "750"]), lang),
        "pct": lambda: f"{r.choice([10, 15, 20, 25, 30, 40, 50, 60, 70])}" + ("%" if lang in ("en", "it", "pt") or r.random() < 0.6 else " %"),
        "day": lambda: r.choice(DAYS),
        "dia": lambda: r.choice(DIAS),
        "time": lambda: r.choice([f"{r.randint(7, 20)}:{r.choice(['00', '15', '30', '45'])}", f"{r.randint(1, 12)} pm" if lang == "en" else f"{r.randint(8, 20)}h"]),
        "name": lambda: r.choice(NAMES),
        "shop": lambda: r.choice(SHOPS),
        "phone": lambda: r.choice(["020 7946 0" + number(r, 3, 3), "555-01" + number(r, 2, 2), "+34 91 000 " + number(r, 2, 2), "900 " + number(r, 3, 3) + " " + number(r, 3, 3), "0800 " + number(r, 6, 6)]),
        "mob": lambda: r.choice(["+44 7700 900" + number(r, 3, 3), "07700900" + number(r, 3, 3), "+34 600 " + number(r, 6, 6), "+1 555 01" + number(r, 5, 5), "98" + number(r, 8, 8), "0800 " + number(r, 6, 6)]),
        "short": lambda: number(r, 5, 5),
        "prem": lambda: r.choice(["09", "087", "090"]) + number(r, 8, 9),
        "ppm": lambda: r.choice(["150p/msg", "£1.50/msg", "150ppm", "£1.50 per min", "10p/min"]),
        "car": lambda: carrier,
        "bank": lambda: bank,
        "mail": lambda: f"{r.choice(['claims', 'agent', 'info'])}{number(r, 0, 3)}@{r.choice(['mail', 'post', 'office'])}.example",
    }
    text = re.sub(r"\{(\w+)\}", lambda m: slots[m[1]](), template)
    # Some senders write without accents, capitals or a name: none of these may decide.
    if r.random() < 0.12:
        text = text.translate(str.maketrans("áéíóúñüçàèêãõ¡¿", "aeiounucaeeao  ")).strip()
    return re.sub(r"[ ]+", " ", text).strip(" :")


def templates(file):
    for line in (HERE / file).read_text(encoding="utf-8").splitlines():
        lang, category, template = line.split("\t")
        yield lang, category, template


def texts(file, each, seed=1):
    """Yields (template number, language, category, text)."""
    r = random.Random(seed)
    for at, (lang, category, template) in enumerate(templates(file)):
        for _ in range(each):
            yield at, lang, category, fill(template, lang, r)
