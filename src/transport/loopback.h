// Two connections of one process, joined in memory: the contract without a socket. Everything moves by posts to one io_context, so the same
// calls give the same order of events, always.
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

/// `options` are those of both ends; token and job play no part.
LoopbackPair loopback(boost::asio::io_context& io, const Options& options);

}  // namespace motley::transport
