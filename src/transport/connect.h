// Reaching a listener: both lanes opened, both handshakes done, or an Error that says what to do.
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

/// Errors say by their Next whether another attempt may help: tell_user, who knows the token refuses us, or our own options do: it does
/// not; drop_peer, something answers that cannot prove to be one of ours; give_up, nobody answers. `done` is called once, on the
/// io_context's thread, at the latest after Options::handshake_time. One attempt: retrying is the caller's.
void connect(boost::asio::io_context& io, const Address& address, const Options& options, Connected done);

}  // namespace motley::transport
