// Listening: strangers knock, peers come in as connections. What is wrong with one never disturbs another.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "base/result.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/transport.h"

namespace motley::transport {

/// Implemented by who listens. Called on the io_context's thread, never from within listen().
class AcceptCallbacks {
 public:
  AcceptCallbacks() = default;
  AcceptCallbacks(const AcceptCallbacks&) = delete;
  AcceptCallbacks& operator=(const AcceptCallbacks&) = delete;
  virtual ~AcceptCallbacks() = default;
  /// A peer with our token and our job, or any_job. Nothing is read from it before start().
  virtual void accepted(std::unique_ptr<Connection> connection) = 0;
  /// Someone was turned away: for the log, which is to bound them. A flood of strangers is a flood of these.
  virtual void refused(const std::string& address, const std::string& reason) = 0;
};

/// Destroying it stops listening, drops unfinished handshakes in silence and removes a unix socket's file; connections live on.
class Acceptor {
 public:
  Acceptor() = default;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  virtual ~Acceptor() = default;
  /// Where it really listens: with the port that 0 became.
  [[nodiscard]] virtual const Address& address() const = 0;
};

/// Refuses an address that other machines reach unless there is a token, one that is taken, and one that is not ours. `owner` outlives it.
/// A unix socket's file is this user's alone; a stale one is replaced. A host name is looked up here and now.
Result<std::unique_ptr<Acceptor>> listen(boost::asio::io_context& io, const Address& address, const Options& options,
                                         AcceptCallbacks& owner);

}  // namespace motley::transport
