// For this module's tests: a pair of connected connections of each kind, so that one test suite runs over all.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "transport/acceptor.h"
#include "transport/connect.h"
#include "transport/faulty.h"
#include "transport/loopback.h"
#include "transport/recording_callbacks_for_tests.h"
#include "transport/shaped.h"

namespace motley::transport {

struct Pair {
  std::unique_ptr<Connection> left;   // the connecting side, where there is a difference
  std::unique_ptr<Connection> right;  // the accepting side
};

/// Keeps accepted connections and the reasons of refusals.
class RecordingAcceptor : public AcceptCallbacks {
 public:
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::string> refusals;
  void accepted(std::unique_ptr<Connection> connection) override { connections.push_back(std::move(connection)); }
  void refused(const std::string&, const std::string& reason) override { refusals.push_back(reason); }
};

inline UnixAddress fresh_socket() {
  static int number = 0;
  return {std::filesystem::temp_directory_path() / ("motley-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++))};
}

inline Result<std::unique_ptr<Connection>> connect_now(boost::asio::io_context& io, const Address& address, const Options& options) {
  std::optional<Result<std::unique_ptr<Connection>>> answer;
  connect(io, address, options, [&](auto result) { answer.emplace(std::move(result)); });
  EXPECT_TRUE(run_until(io, [&] { return answer.has_value(); }));
  return std::move(*answer);
}

inline Pair socket_pair(boost::asio::io_context& io, const Address& address, const Options& options) {
  RecordingAcceptor incoming;
  auto acceptor = listen(io, address, options, incoming);
  EXPECT_TRUE(acceptor.ok()) << acceptor.error().message;
  auto left = connect_now(io, (*acceptor)->address(), options);
  EXPECT_TRUE(left.ok()) << left.error().message;
  EXPECT_TRUE(run_until(io, [&] { return incoming.connections.size() == 1; }));
  return {std::move(left).value(), std::move(incoming.connections[0])};
}

inline Options with(Options options, Bulk bulk) {
  options.bulk = bulk;
  return options;
}
inline Pair tcp_pair(boost::asio::io_context& io, const Options& options) {
  return socket_pair(io, TcpAddress{"127.0.0.1", 0}, with(options, Bulk::tcp));
}
inline Pair unix_pair(boost::asio::io_context& io, const Options& options) {
  return socket_pair(io, fresh_socket(), with(options, Bulk::tcp));
}
/// Requires has_segments().
inline Pair shared_pair(boost::asio::io_context& io, const Options& options) {
  return socket_pair(io, fresh_socket(), with(options, Bulk::shared));
}
inline Pair loopback_pair(boost::asio::io_context& io, const Options& options) {
  auto [left, right] = loopback(io, options);
  return {std::move(left), std::move(right)};
}

/// Rates high enough for a test, low enough to cause waiting.
inline Pair shaped(boost::asio::io_context& io, Pair pair, const Options& options) {
  const auto shape = [&io] {
    return Shape{.up = std::make_shared<Pipe>(io.get_executor(), 4e9), .latency = std::chrono::microseconds(20)};
  };
  return {std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), shape(), options),
          std::make_unique<Shaped>(std::move(pair.right), io.get_executor(), shape(), options)};
}

/// The decorator without a shape.
inline Pair unshaped(boost::asio::io_context& io, Pair pair, const Options& options) {
  return {std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), Shape{}, options),
          std::make_unique<Shaped>(std::move(pair.right), io.get_executor(), Shape{}, options)};
}

/// As shaped(), with shared links at both ends that are slower than the pipe, so that slices wait there.
inline Pair through_shared_links(boost::asio::io_context& io, Pair pair, const Options& options) {
  const auto shape = [&io] {
    return Shape{.up = std::make_shared<Pipe>(io.get_executor(), 4e9),
                 .beyond = {std::make_shared<SharedLink>(3e9)},
                 .latency = std::chrono::microseconds(20),
                 .in = {std::make_shared<SharedLink>(2e9), std::make_shared<SharedLink>(1e9)},
                 .peer_bytes_per_second = 4e9};
  };
  return {std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), shape(), options),
          std::make_unique<Shaped>(std::move(pair.right), io.get_executor(), shape(), options)};
}

inline Pair faultless(boost::asio::io_context& io, Pair pair) {
  return {std::make_unique<Faulty>(std::move(pair.left), io.get_executor(), Faults{}, Rng(1, "left")),
          std::make_unique<Faulty>(std::move(pair.right), io.get_executor(), Faults{}, Rng(1, "right"))};
}

}  // namespace motley::transport
