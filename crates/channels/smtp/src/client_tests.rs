use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{DuplexStream, duplex};
use tokio_rustls::TlsAcceptor;

use super::*;

#[test]
fn offers_of_relays() {
    let lines = ["mx hello", "PIPELINING", "SIZE 1000", "STARTTLS", "AUTH CRAM-MD5 LOGIN PLAIN", "8BITMIME", "smtputf8"];
    let offers = Offers::read(&Reply { code: 250, lines: lines.map(str::to_owned).to_vec() });
    assert_eq!(
        offers,
        Offers { starttls: true, pipelining: true, utf8: true, eight_bit: true, plain: true, login: true, size: Some(1000) }
    );
    let old = Offers::read(&Reply { code: 250, lines: ["PIPELINING", "AUTH=LOGIN", "SIZE 0", "SIZE"].map(str::to_owned).to_vec() });
    assert_eq!(old, Offers { login: true, ..Offers::default() }, "the first line is the name");
}

#[test]
fn lines_of_answers() {
    assert_eq!(reply_line(b"250-SIZE 5\r\n"), Some((250, true, "SIZE 5".into())));
    assert_eq!(reply_line(b"250\r\n"), Some((250, false, String::new())));
    assert_eq!(reply_line(b"550 Empf\xe4nger\n"), Some((550, false, "Empf\u{fffd}nger".into())));
    for bad in [&b"25\r\n"[..], b"\r\n", b"hello\r\n", b"250x\r\n", b"999 x\r\n", b"100 x\r\n"] {
        assert_eq!(reply_line(bad), None);
    }
}

/// Both ends of a connection in memory, where what one end writes has arrived at the other at once.
async fn ends(tls: bool) -> (Connection, Box<dyn Wire>) {
    let (ours, theirs) = duplex(64 * 1024);
    if tls { encrypted(ours, theirs).await } else { (Connection::over(Box::new(ours)), Box::new(theirs)) }
}

async fn encrypted(ours: DuplexStream, theirs: DuplexStream) -> (Connection, Box<dyn Wire>) {
    let path = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/keys").join(name);
    let chain = CertificateDer::pem_file_iter(path("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(path("server.key")).unwrap();
    let ring = || Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(ring()).with_safe_default_protocol_versions().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server.with_no_client_auth().with_single_cert(chain, key).unwrap()));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(path("ca.pem")).unwrap()).unwrap();
    let client = ClientConfig::builder_with_provider(ring()).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(client.with_root_certificates(roots).with_no_client_auth()));
    let name = ServerName::try_from("localhost").unwrap();
    let (client, server) = tokio::join!(connector.connect(name, ours), acceptor.accept(theirs));
    (Connection::over(Box::new(client.unwrap())), Box::new(server.unwrap()))
}

#[tokio::test]
async fn a_connection_is_quiet_until_something_arrives() {
    for tls in [false, true] {
        let (connection, mut relay) = ends(tls).await;
        let connection = connection.quiet().expect("quiet before the first answer");
        let mut connection = connection.quiet().expect("asking changes nothing");
        relay.write_all(b"250 ok\r\n").await.unwrap();
        relay.flush().await.unwrap();
        assert_eq!(connection.reply().await.unwrap().code, 250);
        let connection = connection.quiet().expect("quiet after an answer");
        relay.write_all(b"550 5.1.1 stray\r\n").await.unwrap();
        relay.flush().await.unwrap();
        assert!(connection.quiet().is_none(), "stray, tls: {tls}");

        let (mut connection, mut relay) = ends(tls).await;
        relay.write_all(b"250 ok\r\n550 5.1.1 stray\r\n").await.unwrap();
        relay.flush().await.unwrap();
        assert_eq!(connection.reply().await.unwrap().code, 250);
        assert!(connection.quiet().is_none(), "read already, tls: {tls}");

        for says_goodbye in [false, true] {
            let (connection, mut relay) = ends(tls).await;
            if says_goodbye {
                relay.shutdown().await.unwrap();
            }
            drop(relay);
            assert!(connection.quiet().is_none(), "closed, tls: {tls}");
        }
    }
}
