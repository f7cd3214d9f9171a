// Connects to a listener: opens and authenticates both lanes, or returns an Error that says what to do.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/result.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/transport.h"

namespace motley::transport {

using Connected = std::function<void(Result<std::unique_ptr<Connection>>)>;

/// The error's Next says whether another attempt may help: tell_user (no): an authenticated listener or our own options refuse; drop_peer:
/// a process answers that cannot prove the token; give_up: nothing answers. `done` is called once, on the io_context's thread, at the
/// latest after Options::handshake_time. One attempt: the caller retries.
void connect(boost::asio::io_context& io, const Address& address, const Options& options, Connected done);

}  // namespace motley::transport
