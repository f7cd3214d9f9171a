// A listener: authenticates processes that connect and hands each peer over as a Connection. A bad peer never disturbs another.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "base/result.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/transport.h"

namespace motley::transport {

/// Implemented by the owner of an Acceptor. Called on the io_context's thread, never from within listen().
class AcceptCallbacks {
 public:
  AcceptCallbacks() = default;
  AcceptCallbacks(const AcceptCallbacks&) = delete;
  AcceptCallbacks& operator=(const AcceptCallbacks&) = delete;
  virtual ~AcceptCallbacks() = default;
  /// A peer with our token and our job, or any_job. Nothing is read from it before start().
  virtual void accepted(std::unique_ptr<Connection> connection) = 0;
  /// A process was refused. A flood of unauthenticated processes causes a flood of calls: the log must limit them.
  virtual void refused(const std::string& address, const std::string& reason) = 0;
};

/// Destroying it stops listening, drops unfinished handshakes in silence and removes a unix socket's file; connections live on.
class Acceptor {
 public:
  Acceptor() = default;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  virtual ~Acceptor() = default;
  /// The real address: with the port that the kernel chose for port 0.
  [[nodiscard]] virtual const Address& address() const = 0;
};

/// Refuses an address that other machines reach unless there is a token, one that is in use, and one of another machine. `owner` outlives
/// the acceptor. A unix socket's file is accessible to this user only; a stale one is replaced. A host name is looked up synchronously.
Result<std::unique_ptr<Acceptor>> listen(boost::asio::io_context& io, const Address& address, const Options& options,
                                         AcceptCallbacks& owner);

}  // namespace motley::transport
