#include "rows.hpp"

namespace bench
{

void add_full_rows(Suite &suite)
{
    (void)suite;
}

} // namespace bench
