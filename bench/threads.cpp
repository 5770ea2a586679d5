#include "threads.hpp"

#include <atomic>
#include <thread>
#include <utility>

#include <sched.h>

namespace bench
{
namespace
{

class Crew
{
  public:
    Crew(std::vector<int> cores, std::vector<Task> parts)
        : cores_(std::move(cores)), parts_(std::move(parts))
    {
    }

    void begin()
    {
        stop_ = false;
        for (std::size_t i = 1; i < parts_.size(); i++) {
            threads_.emplace_back([this, i, seen = round_.load()] { work(i, seen); });
        }
    }
    void run()
    {
        waiting_ = parts_.size() - 1;
        round_++;
        parts_[0].run();
        while (waiting_ > 0) {
            std::this_thread::yield();
        }
    }
    void end()
    {
        stop_ = true;
        for (std::thread &thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }

  private:
    void work(std::size_t part, unsigned seen)
    {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<unsigned>(cores_[part % cores_.size()]), &set);
        sched_setaffinity(0, sizeof set, &set);
        while (!stop_) {
            if (round_ == seen) {
                std::this_thread::yield();
                continue;
            }
            seen = round_;
            parts_[part].run();
            waiting_--;
        }
    }

    std::vector<int> cores_;
    std::vector<Task> parts_;
    std::vector<std::thread> threads_;
    std::atomic<unsigned> round_ = 0;
    std::atomic<std::size_t> waiting_ = 0;
    std::atomic<bool> stop_ = false;
};

} // namespace

Task in_threads(const Machine &machine, std::vector<Task> parts)
{
    Task task;
    for (const Task &part : parts) {
        task.results.insert(task.results.end(), part.results.begin(), part.results.end());
    }
    // With one part there is nobody to wait for.
    auto crew = std::make_shared<Crew>(machine.allowed_cores, std::move(parts));
    task.begin = [crew] { crew->begin(); };
    task.run = [crew] { crew->run(); };
    task.end = [crew] { crew->end(); };
    return task;
}

std::pair<std::size_t, std::size_t> share(std::size_t tokens, int part, int parts)
{
    const auto i = static_cast<std::size_t>(part), n = static_cast<std::size_t>(parts);
    return {tokens * i / n, tokens * (i + 1) / n};
}

} // namespace bench
