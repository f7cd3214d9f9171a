// Addresses: a parsed address has the same text, an invalid one is refused with its reason.
#include "transport/address.h"

#include <gtest/gtest.h>

#include <ostream>

namespace motley::transport {
namespace {

struct Good {
  std::string text;
  Address address;
};
std::ostream& operator<<(std::ostream& out, const Good& good) { return out << good.text; }

class GoodAddress : public testing::TestWithParam<Good> {};

TEST_P(GoodAddress, Round_trips) {
  const Result<Address> address = parse_address(GetParam().text);
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(*address, GetParam().address);
  EXPECT_EQ(to_text(*address), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Table, GoodAddress,
    testing::Values(Good{"127.0.0.1:7000", TcpAddress{"127.0.0.1", 7000}}, Good{"[::1]:7000", TcpAddress{"::1", 7000}},
                    Good{"chief.local:1", TcpAddress{"chief.local", 1}}, Good{"localhost:0", TcpAddress{"localhost", 0}},
                    Good{"0.0.0.0:65535", TcpAddress{"0.0.0.0", 65535}}, Good{"[fe80::1%eth0]:9", TcpAddress{"fe80::1%eth0", 9}},
                    Good{"unix:/run/motley.sock", UnixAddress{"/run/motley.sock"}}, Good{"unix:a:b", UnixAddress{"a:b"}}));

struct Bad {
  std::string text;
  std::string because;  // part of the expected message
};
std::ostream& operator<<(std::ostream& out, const Bad& bad) { return out << '"' << bad.text << '"'; }

class BadAddress : public testing::TestWithParam<Bad> {};

TEST_P(BadAddress, Is_refused_with_its_reason) {
  const Result<Address> address = parse_address(GetParam().text);
  ASSERT_FALSE(address.ok());
  EXPECT_EQ(address.error().next, Next::tell_user);
  EXPECT_NE(address.error().message.find(GetParam().because), std::string::npos) << address.error().message;
}

INSTANTIATE_TEST_SUITE_P(Table, BadAddress,
                         testing::Values(Bad{"", "no port"}, Bad{"localhost", "no port"}, Bad{"localhost:", "port \"\""},
                                         Bad{":7000", "no host"}, Bad{"a:65536", "port \"65536\""}, Bad{"a:-1", "port \"-1\""},
                                         Bad{"a:7x", "port \"7x\""}, Bad{"a: 7", "port \" 7\""}, Bad{"::1:7000", "brackets"},
                                         Bad{"[::1:7000", "does not close"}, Bad{"[::1]7000", "no port"}, Bad{"[::1]", "no port"},
                                         Bad{"[]:1", "no host"}, Bad{"a b:1", "host \"a b\""}, Bad{"http://a:1", "several colons"},
                                         Bad{"unix:", "no path"}, Bad{"unix:" + std::string(108, 'x'), "108 bytes"}));

}  // namespace
}  // namespace motley::transport
