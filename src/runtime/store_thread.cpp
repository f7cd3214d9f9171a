#include "runtime/store_thread.h"

#include <thread>

namespace motley::runtime {
namespace {

std::shared_ptr<store::ThreadPool> make_pool(std::size_t threads, const store::Layout& layout, ServerId server) {
  std::size_t values = 0;
  for (const SliceId id : layout.of(server)) values += layout[id].count;
  return std::make_shared<store::ThreadPool>(threads > 0 ? threads : store::useful_threads(values, std::thread::hardware_concurrency()));
}

}  // namespace

StoreThread::StoreThread(boost::asio::io_context& event_loop, const store::Layout& layout, ServerId server, const OptimizerSpec& optimizer,
                         const InitialState& initial_state, std::size_t threads)
    : event_loop_(event_loop),
      pool_(make_pool(threads, layout, server)),
      store_(layout, server, optimizer, initial_state.values, store::ExecutionContext{pool_}) {
  if (initial_state.moments) store_.restore(*initial_state.moments, initial_state.version);
}

}  // namespace motley::runtime
