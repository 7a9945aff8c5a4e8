// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventHub: converts events of the engine into records for the application and counts them, because
// destroying an object has to wait until every event that was delivered is acknowledged
// (ibv_ack_async_event, ibv_ack_cq_events).
//
// The engine names objects by a cookie that is never used twice. So an event that arrives after its
// object is gone finds no object, instead of freed memory. Any thread.
#pragma once

#include "host_abi/provider/async_queue.h"
#include "user/api.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ib::host_abi {

class EventHub final : public user::EventSink {
 public:
  // An opened HCA; `number` is its name in the engine's events (EventOut::file).
  void add_file(std::uint32_t number, AsyncQueue* queue);
  void remove_file(AsyncQueue* queue);

  // `element`: the ibv_cq, ibv_qp or ibv_srq that the application sees.
  std::uint64_t add(void* element, AsyncQueue* queue);
  struct Delivered {
    std::uint32_t async = 0;
    std::uint32_t completion = 0;
  };
  // No event of the object is delivered from now on. Returns the number that the application has
  // got.
  Delivered remove(std::uint64_t cookie);

  // A completion event for the CQ with this cookie is handed to the application. Returns its
  // ibv_cq, or null if it is gone.
  void* deliver_completion(std::uint64_t cookie);

  void on_event(const user::control::EventOut& event) override;

 private:
  struct Object {
    void* element = nullptr;
    AsyncQueue* queue = nullptr;
    Delivered delivered;
  };
  struct File {
    std::uint32_t number = 0;
    AsyncQueue* queue = nullptr;
  };
  void to_object(const user::control::EventOut& event);
  void to_files(const user::control::EventOut& event);

  std::mutex mutex_;
  std::uint64_t next_cookie_ = 1;
  std::unordered_map<std::uint64_t, Object> objects_;
  std::vector<File> files_;
};

}  // namespace ib::host_abi
