//! Encrypts the session of the writer. The pool does it by itself.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier};
use tokio_postgres_rustls::MakeRustlsConnect;

/// `sslmode=require`: protects from eavesdropping, but not from an attacker who impersonates the server.
pub(super) fn unverified() -> Result<MakeRustlsConnect, String> {
    let verifier = Arc::new(AnyCertificate(ring::default_provider()));
    let config = builder()?.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// `sslmode=verify-full`: the server must have a certificate for its host, from a root that the system trusts or that the file `root` has.
pub(super) fn verified(root: Option<&str>) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = root {
        add(&mut roots, path).map_err(|problem| format!("has an sslrootcert that cannot be read: {path}: {problem}"))?;
    }
    if roots.is_empty() {
        return Err("needs root certificates: install ca-certificates on this machine, or give sslrootcert".to_owned());
    }
    Ok(MakeRustlsConnect::new(builder()?.with_root_certificates(roots).with_no_client_auth()))
}

fn add(roots: &mut RootCertStore, path: &str) -> Result<(), String> {
    let pem = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
        count += 1;
    }
    if count == 0 { Err("holds no certificate in PEM".to_owned()) } else { Ok(()) }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
