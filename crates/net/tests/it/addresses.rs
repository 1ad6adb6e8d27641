//! Which addresses and URLs the policy permits.

use std::net::IpAddr;

use nuncio_net::{GuardPolicy, Refused, Url};

const PUBLIC: &[&str] = &[
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
    "223.255.255.255", "2001:4860:4860::8888", "2001:200::1", "2606:4700::1111", "3ffe::1", // NAT64 of 8.8.8.8.
    "64:ff9b::808:808",
];

const SPECIAL: &[(&str, &str)] = &[
    ("0.0.0.0", "an unspecified address"),
    ("0.255.255.255", "an unspecified address"),
    ("10.0.0.0", "a private address"),
    ("10.255.255.255", "a private address"),
    ("100.64.0.0", "a shared (carrier-grade NAT) address"),
    ("100.127.255.255", "a shared (carrier-grade NAT) address"),
    ("127.0.0.1", "a loopback address"),
    ("127.255.255.255", "a loopback address"),
    ("168.63.129.16", "a metadata service address"),
    ("169.254.0.0", "a link-local address"),
    ("169.254.169.254", "a link-local address"),
    ("169.254.255.255", "a link-local address"),
    ("172.16.0.0", "a private address"),
    ("172.31.255.255", "a private address"),
    ("192.0.0.192", "a reserved address"),
    ("192.0.2.1", "a documentation address"),
    ("192.88.99.1", "a 6to4 relay address"),
    ("192.168.0.0", "a private address"),
    ("192.168.255.255", "a private address"),
    ("198.18.0.0", "a benchmarking address"),
    ("198.19.255.255", "a benchmarking address"),
    ("198.51.100.1", "a documentation address"),
    ("203.0.113.1", "a documentation address"),
    ("224.0.0.1", "a multicast address"),
    ("239.255.255.255", "a multicast address"),
    ("240.0.0.0", "a reserved address"),
    ("255.255.255.254", "a reserved address"),
    ("255.255.255.255", "a broadcast address"),
    ("::", "an unspecified address"),
    ("::1", "a loopback address"),
    ("::2", "an IPv4-compatible address"),
    ("::127.0.0.1", "an IPv4-compatible address"),
    ("::8.8.8.8", "an IPv4-compatible address"),
    ("::ffff:127.0.0.1", "an IPv4-mapped address"),
    ("::ffff:169.254.169.254", "an IPv4-mapped address"),
    ("::ffff:8.8.8.8", "an IPv4-mapped address"),
    ("::ffff:0:127.0.0.1", "a reserved address"),
    ("64:ff9b::127.0.0.1", "a loopback address"),
    ("64:ff9b::10.0.0.1", "a private address"),
    ("64:ff9b::169.254.169.254", "a link-local address"),
    ("64:ff9b:1::8.8.8.8", "a local NAT64 address"),
    ("100::1", "a reserved address"),
    ("2001::1", "a Teredo address"),
    ("2001:2::1", "a benchmarking address"),
    ("2001:1ff:ffff::1", "a protocol assignment address"),
    ("2001:db8::1", "a documentation address"),
    ("2002:7f00:1::1", "a 6to4 address"),
    ("2002:808:808::1", "a 6to4 address"),
    ("3fff:fff::1", "a documentation address"),
    ("4000::1", "a reserved address"),
    ("5f00::1", "a reserved address"),
    ("fc00::1", "a private (unique local) address"),
    ("fd00:ec2::254", "a private (unique local) address"),
    ("fe80::1", "a link-local address"),
    ("febf:ffff::1", "a link-local address"),
    ("fec0::1", "a private (site-local) address"),
    ("ff02::1", "a multicast address"),
];

fn check(policy: &GuardPolicy, address: &str) -> Result<(), Refused> {
    let ip: IpAddr = address.parse().unwrap();
    policy.check_address("host.example", ip)
}

fn check_url(policy: &GuardPolicy, url: &str) -> Result<(), Refused> {
    policy.check_url(&Url::parse(url).unwrap())
}

fn networks(list: &[&str]) -> GuardPolicy {
    GuardPolicy { allow_networks: list.iter().map(|net| net.parse().unwrap()).collect(), ..GuardPolicy::default() }
}

/// The address as a URL spells it.
fn literal(address: &str) -> String {
    match address.contains(':') {
        true => format!("https://[{address}]/"),
        false => format!("https://{address}/"),
    }
}

#[test]
fn public_addresses_pass() {
    let policy = GuardPolicy::default();
    for address in PUBLIC {
        assert_eq!(check(&policy, address), Ok(()), "{address}");
        assert_eq!(check_url(&policy, &literal(address)), Ok(()), "{address}");
    }
}

#[test]
fn special_addresses_are_refused_alone_and_in_a_url() {
    let policy = GuardPolicy::default();
    for (address, reason) in SPECIAL {
        let refused = check(&policy, address).expect_err(address);
        assert_eq!(refused.reason(), *reason, "{address}");
        let setting = match *reason {
            "a loopback address" => "net.allow_loopback",
            _ => "net.allow_networks",
        };
        assert_eq!(refused.setting(), Some(setting), "{address}");

        let refused = check_url(&policy, &literal(address)).expect_err(address);
        assert_eq!(refused.reason(), *reason, "{address}");
    }
}

#[test]
fn every_spelling_of_an_address_is_seen_through() {
    let policy = GuardPolicy::default();
    for url in [
        "https://2130706433/",
        "https://0x7f000001/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://127.0.0.1./",
        "https://127.0.0.1:8443/",
        "https://%31%32%37.0.0.1/",
        "https://①②⑦.0.0.1/",
        "https://127。0。0。1/",
        "https:\\\\127.0.0.1\\",
        "https://[0:0:0:0:0:0:0:1]/",
    ] {
        let refused = check_url(&policy, url).expect_err(url);
        assert_eq!(refused.setting(), Some("net.allow_loopback"), "{url}");
    }
    for url in ["https://[::ffff:7f00:1]/", "https://[::7f00:1]/"] {
        let refused = check_url(&policy, url).expect_err(url);
        assert_eq!(refused.setting(), Some("net.allow_networks"), "{url}");
    }
}

#[test]
fn each_setting_permits_what_it_names_and_no_more() {
    let loopback = GuardPolicy { allow_loopback: true, ..GuardPolicy::default() };
    for address in ["127.0.0.1", "127.9.9.9", "::1"] {
        assert_eq!(check(&loopback, address), Ok(()), "{address}");
    }
    for address in ["0.0.0.0", "::", "10.0.0.1", "::ffff:127.0.0.1", "169.254.169.254"] {
        assert!(check(&loopback, address).is_err(), "{address}");
    }

    let named = networks(&["10.1.0.0/16", "fd00:1::/32", "127.0.0.1/32"]);
    for address in ["10.1.2.3", "fd00:1::9", "127.0.0.1", "64:ff9b::10.1.2.3"] {
        assert_eq!(check(&named, address), Ok(()), "{address}");
    }
    for address in ["10.2.0.0", "fd00:2::9", "127.0.0.2", "::ffff:10.1.2.3"] {
        assert!(check(&named, address).is_err(), "{address}");
    }

    let http = GuardPolicy { allow_http: true, ..GuardPolicy::default() };
    assert_eq!(check_url(&http, "http://example.com/"), Ok(()));
    for url in ["http://127.0.0.1/", "ftp://example.com/", "http://u@example.com/"] {
        assert!(check_url(&http, url).is_err(), "{url}");
    }
}

#[test]
fn plain_http_to_this_machine_goes_where_loopback_does() {
    let loopback = GuardPolicy { allow_loopback: true, ..GuardPolicy::default() };
    for host in ["127.0.0.1:3000", "127.8.8.8", "[::1]:3000", "localhost:3000", "app.localhost", "0x7f.1"] {
        assert_eq!(check_url(&loopback, &format!("http://{host}/hook")), Ok(()), "{host}");
        let refused = check_url(&GuardPolicy::default(), &format!("http://{host}/hook")).expect_err(host);
        assert_eq!(refused.setting(), Some("net.allow_loopback"), "{host}");
    }
    for host in ["example.com", "localhost.example.com", "notlocalhost", "93.184.216.34", "[2606:4700::1]"] {
        let refused = check_url(&loopback, &format!("http://{host}/hook")).expect_err(host);
        assert_eq!(refused.setting(), Some("net.allow_http"), "{host}");
    }
}

#[test]
fn refusals_name_host_reason_and_setting() {
    let policy = GuardPolicy::default();
    for (url, message) in [
        ("http://example.com/s3cret", "example.com: plain http is refused (the operator can permit it with net.allow_http)"),
        ("https://[::1]:9/s3cret", "[::1]: a loopback address is refused (the operator can permit it with net.allow_loopback)"),
        ("https://192.168.1.1/?s3cret", "192.168.1.1: a private address is refused (the operator can permit it with net.allow_networks)"),
        ("https://s3cret@example.com/", "example.com: a user name or password in the URL is refused (no setting permits it)"),
        ("https://:s3cret@example.com/", "example.com: a user name or password in the URL is refused (no setting permits it)"),
        ("gopher://example.com/s3cret", "example.com: a scheme other than https is refused (no setting permits it)"),
        ("data:text/plain,s3cret", "(no host): a scheme other than https is refused (no setting permits it)"),
    ] {
        assert_eq!(check_url(&policy, url).expect_err(url).to_string(), message);
    }
}

#[test]
fn the_policy_reads_from_settings() {
    let read = |text| serde_json::from_str::<GuardPolicy>(text);
    assert_eq!(read("{}").unwrap(), GuardPolicy::default());
    assert_eq!(read(r#"{"allow_networks": ["10.0.0.0/8", "fd00::/8"]}"#).unwrap(), networks(&["10.0.0.0/8", "fd00::/8"]));
    assert!(read(r#"{"allow_htttp": true}"#).is_err());
    assert!(read(r#"{"allow_networks": ["10.0.0.0/33"]}"#).is_err());
}

/// What each name is refused as, and by which setting the operator permits it.
#[test]
fn names_that_no_public_server_can_have_are_refused_at_the_door() {
    let url = |host: &str| Url::parse(&format!("https://{host}/hook")).unwrap();
    let refused = |policy: &GuardPolicy, host: &str| policy.check_url(&url(host)).err().map(|refused| refused.setting());
    let closed = GuardPolicy::default();
    let loopback = GuardPolicy { allow_loopback: true, ..GuardPolicy::default() };
    let networks = GuardPolicy { allow_networks: vec!["10.0.0.0/8".parse().unwrap()], ..GuardPolicy::default() };
    for host in ["localhost", "LOCALHOST", "localhost.", "api.localhost", "localhost.localdomain"] {
        assert_eq!(refused(&closed, host), Some(Some("net.allow_loopback")), "{host}");
        assert_eq!(refused(&loopback, host), None, "{host}");
        assert!(refused(&networks, host).is_some(), "{host}");
    }
    let inside = ["metadata.google.internal", "foo.internal", "foo.internal.", "printer.local", "db", "metadata", "nas.lan", "x.home.arpa"];
    for host in inside.into_iter().chain(["wiki.corp", "app.intranet", "router.home", "api.private"]) {
        assert_eq!(refused(&closed, host), Some(Some("net.allow_networks")), "{host}");
        assert_eq!(refused(&loopback, host), Some(Some("net.allow_networks")), "{host}");
        assert_eq!(refused(&networks, host), None, "{host}");
    }
    for host in ["example.com", "internal.example.com", "localhost.example.com", "local.example", "xn--bcher-kva.example", "a.b.c.d.e.org"]
    {
        assert_eq!(refused(&closed, host), None, "{host}");
    }
    assert_eq!(GuardPolicy::open().check_url(&url("db")), Ok(()));
}
