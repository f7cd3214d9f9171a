// Two connected Connections within one process, without sockets. Everything is posted to one io_context, so the same calls always give the
// same order of events.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>

#include "transport/options.h"
#include "transport/transport.h"

namespace motley::transport {

struct LoopbackPair {
  std::unique_ptr<Connection> left;
  std::unique_ptr<Connection> right;
};

/// `options` apply to both ends; token and job are ignored.
LoopbackPair loopback(boost::asio::io_context& io, const Options& options);

}  // namespace motley::transport
