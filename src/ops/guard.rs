//! Which requests may change something when a browser sends them.
//!
//! Listening on loopback keeps other machines out, but not web pages: a page from anywhere can
//! make the operator's own browser send a `POST` to `127.0.0.1`. Browsers say so, in `Origin`
//! (RFC 6454, section 7) and in `Sec-Fetch-Site` (W3C Fetch Metadata). A request that changes
//! something and bears them passes only if it comes from a page of this very server, by address:
//! under a *name*, the page could be a foreign one whose name was pointed here in the meantime
//! (DNS rebinding). Programs send neither header and pass. Reading is not guarded: without CORS
//! headers, which this server never sends, a foreign page cannot see an answer; a rebound name
//! could, so figures that must stay secret call for a proxy that checks names.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{HeaderMap, Method, header};

/// Whether the request may go on; otherwise why not.
pub(super) fn check(method: &Method, headers: &HeaderMap) -> Result<(), &'static str> {
    if method.is_safe() {
        return Ok(());
    }
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err("refused: sent by a browser for another site's page");
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let own = match (authority, host) {
        (Some((_, authority)), Some(host)) => {
            authority.eq_ignore_ascii_case(host) && is_address(host)
        }
        _ => false,
    };
    if own && origins.next().is_none() {
        Ok(())
    } else {
        Err("refused: the origin is not a page of this server, called by its address")
    }
}

/// Whether a `host[:port]` is an IP address or the loopback's own name.
fn is_address(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(ip, _)| ip.parse::<Ipv6Addr>().is_ok());
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(method: &Method, given: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, value.parse().unwrap());
        }
        check(method, &headers).is_ok()
    }

    #[test]
    fn programs_and_the_servers_own_pages_may_change_something() {
        for method in [Method::POST, Method::PATCH] {
            assert!(passes(&method, &[]));
            assert!(passes(&method, &[("host", "desk.example:9011")]));
            for host in ["127.0.0.1:9011", "localhost:9011", "[::1]:9011", "10.0.0.1"] {
                let origin = format!("http://{host}");
                let given =
                    [("host", host), ("origin", &origin), ("sec-fetch-site", "same-origin")];
                assert!(passes(&method, &given), "{host}");
            }
        }
    }

    #[test]
    fn pages_from_elsewhere_may_not() {
        let here = ("host", "127.0.0.1:9011");
        for origin in
            ["http://evil.example", "http://127.0.0.1:9010", "http://127.0.0.1", "null", "", "é"]
        {
            assert!(!passes(&Method::POST, &[here, ("origin", origin)]), "{origin}");
        }
        assert!(!passes(&Method::POST, &[("origin", "http://127.0.0.1:9011")]));
        assert!(!passes(&Method::POST, &[here, ("sec-fetch-site", "cross-site")]));
        assert!(!passes(&Method::PATCH, &[here, ("sec-fetch-site", "same-site")]));
        let own = ("origin", "http://127.0.0.1:9011");
        assert!(!passes(&Method::POST, &[here, own, ("origin", "http://evil.example")]));
    }

    #[test]
    fn a_foreign_name_that_was_pointed_here_may_not() {
        for host in ["evil.example:9011", "127.0.0.1.evil.example", "[evil]:9011", "localhost.evil"]
        {
            let origin = format!("http://{host}");
            assert!(!passes(&Method::POST, &[("host", host), ("origin", &origin)]), "{host}");
        }
    }

    #[test]
    fn anybody_may_read() {
        let foreign = [("host", "127.0.0.1:9011"), ("origin", "http://evil.example")];
        assert!(passes(&Method::GET, &foreign));
        assert!(passes(&Method::HEAD, &foreign));
    }
}
